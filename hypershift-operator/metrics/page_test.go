// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/metrics/metricstest"
)

const conditionsPage = "../../docs/reference/conditions.md"

var (
	conditionRow  = regexp.MustCompile("^\\| (`[^|]*`) \\| (True|False)\\b")
	conditionType = regexp.MustCompile("`([A-Za-z]+)`")
)

// documented returns the good status of each condition type according to the conditions page, under a heading.
func documented(t *testing.T, heading string) map[string]metav1.ConditionStatus {
	t.Helper()
	raw, err := os.ReadFile(conditionsPage)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no part %s", conditionsPage, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	all, tellsGood := map[string]metav1.ConditionStatus{}, false
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| type |") {
			tellsGood = strings.HasPrefix(line, "| type | good |")
		}
		row := conditionRow.FindStringSubmatch(line)
		if row == nil || !tellsGood {
			continue
		}
		for _, name := range conditionType.FindAllStringSubmatch(row[1], -1) {
			all[name[1]] = metav1.ConditionStatus(row[2])
		}
	}
	if len(all) < 10 {
		t.Fatalf("%s: only %d conditions were read under %s", conditionsPage, len(all), heading)
	}
	return all
}

// failureCounts returns the nonzero failure metrics of an object.
func failureCounts(t *testing.T, object client.Object, family string) metricstest.Samples {
	t.Helper()
	reader := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(object).Build()
	counted := metricstest.Samples{}
	for sample, value := range metricstest.Of(t, New(reader, clocktesting.NewFakePassiveClock(now))) {
		if strings.HasPrefix(sample, family+"{") && value != 0 {
			counted[sample] = value
		}
	}
	return counted
}

// TestFailuresOfThePage checks that the failure metrics and the conditions page agree on the normal status of each
// condition.
func TestFailuresOfThePage(t *testing.T) {
	for _, tc := range []struct {
		heading, family string
		// uncounted are on the page, but not in the metric that HyperShift's alerts use.
		uncounted []string
		// others are conditions without a good status on the page, or that are absent while all is well.
		others map[string]metav1.ConditionStatus
		with   func(conditionType string, status metav1.ConditionStatus) client.Object
	}{
		{"HostedCluster", "hypershift_hostedclusters_failure_conditions",
			[]string{"HostedClusterRestoredFromBackup", "ControlPlanePodsScheduled", "EtcdMembersHealthy", "EtcdDiskFast", "EtcdVolumesResized", "EtcdRecoveryActive",
				"SignersUpToDate", "PublishedAddressUpToDate", "ClusterVersionRetrievedUpdates", "CloudResourcesDestroyed"}, nil,
			func(conditionType string, status metav1.ConditionStatus) client.Object {
				return hostedCluster(func(hc *hyperv1.HostedCluster) {
					hc.Status.Conditions = []metav1.Condition{{Type: conditionType, Status: status}}
				})
			}},
		{"NodePool", "hypershift_nodepools_failure_conditions", []string{"ValidTuningConfig"},
			map[string]metav1.ConditionStatus{"UpdatingConfig": "False", "UpdatingVersion": "False", "UpdatingPlatformMachineTemplate": "False",
				"IgnitionEndpointAvailable": "True", "ReachedIgnitionEndpoint": "True", "AllFieldsHonored": "True"},
			func(conditionType string, status metav1.ConditionStatus) client.Object {
				return nodePool(func(np *hyperv1.NodePool) {
					np.Status.Conditions = []hyperv1.NodePoolCondition{{Type: conditionType, Status: corev1.ConditionStatus(status)}}
				})
			}},
	} {
		pageSays := documented(t, tc.heading)
		for _, name := range tc.uncounted {
			if _, known := pageSays[name]; !known {
				t.Errorf("the page has no condition %s any more", name)
			}
			delete(pageSays, name)
		}
		maps.Copy(pageSays, tc.others)
		for name, good := range pageSays {
			t.Run(tc.heading+"/"+name, func(t *testing.T) {
				g := NewWithT(t)
				counted := "not_" + name
				if good == metav1.ConditionFalse {
					counted = name
				}
				sample := tc.family + `{condition="` + counted + `",platform="MAAS"}`
				g.Expect(failureCounts(t, tc.with(name, good), tc.family)).To(BeEmpty(), "it is as it should be")
				for _, bad := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
					if bad != good {
						g.Expect(failureCounts(t, tc.with(name, bad), tc.family)).To(Equal(metricstest.Samples{sample: 1}), bad)
					}
				}
			})
		}
	}
}
