// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/skew"
)

// TestVersion checks that the source is of the last release's minor version, or of the next one.
func TestVersion(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../../hack/releases.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var table struct{ Releases []struct{ Version string } }
	g.Expect(yaml.Unmarshal(text, &table)).To(Succeed())
	newest := table.Releases[len(table.Releases)-1].Version
	g.Expect(skew.CheckInstall(newest)).To(Succeed())
	this, last := semver.MustParse(skew.Version), semver.MustParse(newest)
	g.Expect(this.GTE(last)).To(BeTrue(), "the source is of version %s or later", last)
}

func TestCheckInstall(t *testing.T) {
	for installed, says := range map[string]string{
		"":                   "",
		"0.1.0":              "",
		"0.1.7":              "",
		skew.Version:         "",
		"v" + skew.Version:   "",
		skew.Version + "-rc": "",
		"0.0.9":              "an upgrade must not skip a minor version; install the newest version 0.1 first",
		"0.3.0": "version 0.3.0 is installed, and this is 0.2.0: going back by a minor version is not possible; " +
			"use version 0.3, or restore backups of the hosted clusters that version 0.2 wrote",
		"1.0.0":  "going back by a minor version is not possible",
		"latest": `reading the installed version: "latest" is not a version such as 0.2.0`,
	} {
		t.Run(installed, func(t *testing.T) { expect(t, skew.CheckInstall(installed), says) })
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		part              skew.Part
		version, operator string
		says              string
	}{
		{skew.ControlPlaneOperator, "0.1.0", "0.2.0", ""},
		{skew.ControlPlaneOperator, "0.2.0", "0.1.0", ""},
		{skew.ControlPlaneOperator, "0.1.0", "0.3.0", "version 0.1.0 of the control-plane-operator does not work with version " +
			"0.3.0 of the operator; upgrade the operator by one minor version at a time"},
		{skew.NodeAgent, "0.1.0", "0.9.0", ""},
		{skew.NodeAgent, "0.3.0", "0.1.0", "version 0.3.0 of the node-agent does not work"},
		{skew.NodeAgent, "0.9.0", "1.2.0", ""},
		{skew.Payload, "0.1.0", "0.2.0", ""},
		{skew.Payload, "0.2.0", "0.1.0", ""},
		{skew.CLI, "0.1.0", "0.2.0", ""},
		{skew.CLI, "0.2.0", "0.1.0", ""},
		{skew.CLI, "0.3.0", "0.1.0", "use the command line of the operator's version"},
		{skew.CLI, "1.0.0", "0.9.0", "use the command line of the operator's version"},
		{skew.CLI, "unknown", "0.1.0", `comparing the command line with the operator: "unknown" is not a version`},
		{skew.CLI, "0.1.0", "unknown", `comparing the operator with the command line: "unknown" is not a version`},
	} {
		t.Run(fmt.Sprintf("%s %s with operator %s", tt.part, tt.version, tt.operator), func(t *testing.T) {
			expect(t, skew.Check(tt.part, tt.version, tt.operator), tt.says)
		})
	}
}

func TestCheckPayload(t *testing.T) {
	for lowest, says := range map[string]string{
		"":           "",
		"0.1.0":      "",
		skew.Version: "",
		"99.0.0": "the release needs version 99.0.0 of the operator, and this is 0.2.0; upgrade the operator first, or choose " +
			"another release image",
		"new": `the release names the lowest version of the operator: "new" is not a version`,
	} {
		t.Run(lowest, func(t *testing.T) { expect(t, skew.CheckPayload(lowest), says) })
	}
}

func expect(t *testing.T, err error, says string) {
	t.Helper()
	if says == "" {
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return
	}
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
}

// TestDocumented checks that the page of our versions has each row of the table.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/support-policy.md")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, rule := range skew.Rules() {
		row := fmt.Sprintf("| %s | %s | %s | %s | %s |", rule.Part, skew.Limit(rule.Behind), skew.Limit(rule.Ahead), rule.When,
			rule.Remedy)
		NewWithT(t).Expect(string(page)).To(ContainSubstring("\n" + row + "\n"))
	}
}
