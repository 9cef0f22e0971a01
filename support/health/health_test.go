// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/support/health"
)

func condition(t, status, reason string) metav1.Condition {
	return metav1.Condition{Type: t, Status: metav1.ConditionStatus(status), Reason: reason}
}

func TestFirst(t *testing.T) {
	for _, tt := range []struct {
		name       string
		conditions []metav1.Condition
		expected   []health.Expectation
		found      string
		progress   bool
	}{
		{"returns the cause, not its effect", []metav1.Condition{
			condition("Available", "False", "WaitingForAvailable"), condition("ValidReleaseImage", "False", "InvalidImage"),
		}, health.HostedCluster(), "ValidReleaseImage is False (InvalidImage)", false},
		{"returns a fault before a change on its way", []metav1.Condition{
			condition("UpdatingVersion", "True", "AsExpected"), condition("Ready", "False", "WaitingForMachines"),
		}, health.NodePool(1), "Ready is False (WaitingForMachines)", false},
		{"returns a change on its way", []metav1.Condition{
			condition("Progressing", "True", "Progressing"), condition("Available", "True", "AsExpected"),
		}, health.HostedCluster(), "Progressing is True (Progressing)", true},
		{"takes an upgrade that is refused for a fault", []metav1.Condition{condition("Progressing", "True", "Blocked")},
			health.HostedCluster(), "Progressing is True (Blocked)", false},
		{"takes an update in place that failed for a fault", []metav1.Condition{condition("UpdatingVersion", "False", "InplaceUpgradeFailed")},
			health.NodePool(1), "UpdatingVersion is False (InplaceUpgradeFailed)", false},
		{"accepts a cluster without nodes", []metav1.Condition{condition("DataPlaneConnectionAvailable", "Unknown", "NoWorkerNodesAvailable")},
			health.HostedCluster(), "", false},
		{"accepts a pool without machines that should have none", []metav1.Condition{condition("AllMachinesReady", "False", "NotFound")},
			health.NodePool(0), "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			found := health.First(tt.conditions, tt.expected)
			if tt.found == "" {
				g.Expect(found).To(BeNil())
				return
			}
			g.Expect(found.String()).To(Equal(tt.found))
			g.Expect(found.Progress).To(Equal(tt.progress))
		})
	}
}

// notListed are documented conditions without an expectation, with the reason.
var notListed = map[string]string{
	"ClusterVersionRetrievedUpdates": "an OpenShift cluster without an update service never retrieves updates",
}

var code = regexp.MustCompile("`([A-Za-z]+)`")

// TestDocumented compares the tables with the reference of conditions.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "conditions.md"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, text2, _ := strings.Cut(string(text), "\n## HostedCluster\n")
	clusters, rest, _ := strings.Cut(text2, "\n## NodePool\n")
	pools, _, _ := strings.Cut(rest, "\n## HCPEtcdBackup\n")
	for name, tt := range map[string]struct {
		page     string
		expected []health.Expectation
	}{
		"HostedCluster": {clusters, health.HostedCluster()}, "NodePool": {pools, health.NodePool(1)},
	} {
		t.Run(name, func(t *testing.T) {
			g, rows := NewWithT(t), 0
			good := map[string]string{}
			for _, e := range tt.expected {
				good[e.Type] = string(e.Good)
			}
			inTable := false
			for line := range strings.Lines(tt.page) {
				cells := strings.Split(line, "|")
				inTable = len(cells) > 3 && (inTable || strings.TrimSpace(cells[2]) == "good")
				if !inTable {
					continue
				}
				status, _, _ := strings.Cut(strings.TrimSpace(cells[2]), " ")
				status = strings.TrimRight(status, ";:,")
				for _, match := range code.FindAllStringSubmatch(cells[1], -1) {
					if (status == "True" || status == "False") && notListed[match[1]] == "" {
						g.Expect(good).To(HaveKeyWithValue(match[1], status))
						rows++
					}
				}
			}
			g.Expect(rows).To(BeNumerically(">", 9), "the page has tables")
		})
	}
}
