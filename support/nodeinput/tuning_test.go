// SPDX-License-Identifier: Apache-2.0

package nodeinput

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestReadTuning(t *testing.T) {
	for name, tc := range map[string]struct {
		text             string
		tuneds, profiles int
		fails            string
	}{
		"When the document is a Tuned, it should return one":              {text: "apiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata: {name: a}\n", tuneds: 1},
		"When there are several documents, it should return each":         {text: "apiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata: {name: a}\n---\napiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata: {name: b}\n", tuneds: 2},
		"When the document is a PerformanceProfile, it should return one": {text: "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata: {name: p}\nspec: {cpu: {isolated: 4-7, reserved: 0-3}}\n", profiles: 1},
		"When a profile has no reserved CPUs, it should return an error":  {text: "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata: {name: p}\nspec: {cpu: {isolated: 4-7}}\n", fails: `"p" has no spec.cpu.reserved: set it`},
		"When a profile has version v1, it should return an error":        {text: "apiVersion: performance.openshift.io/v1\nkind: PerformanceProfile\nmetadata: {name: p}\n", fails: "PerformanceProfile of performance.openshift.io/v2"},
		"When the document is of another kind, it should return an error": {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", fails: `ConfigMap "c" is not for tuning`},
		"When the document has no name, it should return an error":        {text: "apiVersion: tuned.openshift.io/v1\nkind: Tuned\n", fails: "has no metadata.name"},
		"When the document is empty, it should return an error":           {text: "\n", fails: "it is empty"},
		"When the document is not YAML, it should return an error":        {text: "{", fails: "it is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			read, err := ReadTuning(tc.text)
			if tc.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(read.Tuneds).To(HaveLen(tc.tuneds))
			g.Expect(read.Profiles).To(HaveLen(tc.profiles))
		})
	}
}

// TestOpenShiftKinds checks one document of each kind from which an OpenShift payload configures nodes.
func TestOpenShiftKinds(t *testing.T) {
	for kind, apiVersion := range map[string]string{
		"MachineConfig": "machineconfiguration.openshift.io/v1", "KubeletConfig": "machineconfiguration.openshift.io/v1",
		"ContainerRuntimeConfig": "machineconfiguration.openshift.io/v1", "ImageContentSourcePolicy": "operator.openshift.io/v1alpha1",
		"ImageDigestMirrorSet": "config.openshift.io/v1", "ImageTagMirrorSet": "config.openshift.io/v1", "ClusterImagePolicy": "config.openshift.io/v1alpha1",
	} {
		t.Run("When a NodePool references a "+kind+", it should be passed to the payload", func(t *testing.T) {
			g := NewWithT(t)
			read, err := Read("apiVersion: "+apiVersion+"\nkind: "+kind+"\nmetadata: {name: mine}\nspec: {}\n", releaseinfo.OpenShift)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(read.Documents).To(ConsistOf(ContainSubstring("kind: " + kind)))
		})
	}
	t.Run("When a NodePool references another kind, it should list the supported kinds", func(t *testing.T) {
		_, err := Read("apiVersion: v1\nkind: Secret\nmetadata: {name: mine}\n", releaseinfo.OpenShift)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("ImageTagMirrorSet, ClusterImagePolicy")))
	})
}

func TestUsesRunc(t *testing.T) {
	for document, want := range map[string]bool{
		"kind: ContainerRuntimeConfig\nspec: {containerRuntimeConfig: {defaultRuntime: runc}}": true,
		"kind: ContainerRuntimeConfig\nspec: {containerRuntimeConfig: {defaultRuntime: crun}}": false,
		"kind: KubeletConfig\nspec: {containerRuntimeConfig: {defaultRuntime: runc}}":          false,
		"{": false,
	} {
		NewWithT(t).Expect(UsesRunc([]string{document})).To(Equal(want), document)
	}
}
