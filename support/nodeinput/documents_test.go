// SPDX-License-Identifier: Apache-2.0

package nodeinput_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestRead(t *testing.T) {
	kubernetes, openShift := releaseinfo.Kubernetes, releaseinfo.OpenShift
	ignition := func(name, storage string) string {
		return "kind: MachineConfig\nmetadata: {name: " + name + "}\nspec: {config: {ignition: {version: 3.2.0}, storage: " + storage + "}}\n"
	}
	for _, tc := range []struct {
		name          string
		distribution  releaseinfo.Distribution
		text          string
		want, refusal string
	}{
		{"When the document is a MachineConfig, it should get the worker role", openShift, "kind: MachineConfig\nmetadata: {name: a}", "machineconfiguration.openshift.io/role: worker", ""},
		{"When the document is a KubeletConfig, it should select built-in pools", openShift, "kind: KubeletConfig\nmetadata: {name: a}", "machineconfiguration.openshift.io/mco-built-in: \"\"", ""},
		{"When the document is a ContainerRuntimeConfig, it should select built-in pools", openShift, "kind: ContainerRuntimeConfig\nmetadata: {name: a}", "machineconfiguration.openshift.io/mco-built-in: \"\"", ""},
		{"When an ImageContentSourcePolicy mirrors sources, it should be passed to OpenShift", openShift, "kind: ImageContentSourcePolicy\nmetadata: {name: a}", "ImageContentSourcePolicy", ""},
		{"When an ImageDigestMirrorSet mirrors digests, it should be passed to OpenShift", openShift, "kind: ImageDigestMirrorSet\nmetadata: {name: a}", "ImageDigestMirrorSet", ""},
		{"When the document is an image policy, it should get its stable version", openShift, "apiVersion: config.openshift.io/v1alpha1\nkind: ClusterImagePolicy", "apiVersion: config.openshift.io/v1\n", ""},
		{"When the kind is not supported, it should name the supported kinds", openShift, "kind: Deployment", "", `Deployment "" is not a configuration of OpenShift nodes: use one of MachineConfig`},
		{"When the document has no kind, it should return an error", kubernetes, "metadata: {name: a}", "", "a document without kind"},
		{"When the document is not YAML, it should return an error", openShift, "a: [", "", "it is not YAML"},
		{"When the document is a list, it should return an error", openShift, "- a\n", "", "it is not YAML"},
		{"When the document is empty, it should return nothing", openShift, "---\n# comment\n---\n", "", ""},
		{"When an ImageTagMirrorSet mirrors tags, it should be honoured for Kubernetes", kubernetes,
			"kind: ImageTagMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: [{source: a.example, mirrors: [b.example]}]}", "ImageTagMirrorSet", ""},
		{"When an ImageTagMirrorSet mirrors tags, it should be passed to OpenShift", openShift, "kind: ImageTagMirrorSet\nmetadata: {name: a}", "ImageTagMirrorSet", ""},
		{"When a kind is for CRI-O only, it should be rejected for Kubernetes", kubernetes, "kind: ContainerRuntimeConfig\nmetadata: {name: crio}", "", `ContainerRuntimeConfig "crio" is not a configuration of Kubernetes nodes`},
		{"When a MachineConfig sets a kernel type, it should be rejected for Kubernetes", kubernetes,
			"kind: MachineConfig\nmetadata: {name: rt}\nspec: {kernelType: realtime}", "", `MachineConfig "rt" sets spec.kernelType`},
		{"When spec is misspelt, it should report the unknown field", kubernetes, "kind: MachineConfig\nmetadata: {name: a}\nspecs: {config: {}}", "", "has an unknown field specs; remove it"},
		{"When spec is not an object, it should return an error", kubernetes, "kind: MachineConfig\nmetadata: {name: a}\nspec: [a]", "", `the spec of MachineConfig "a" is not an object`},
		{"When a file has no path, it should return an error", kubernetes, ignition("a", "{files: [{mode: 420}]}"), "", "not a valid Ignition config"},
		{"When two configs contradict each other, it should return an error", kubernetes,
			ignition("a", "{links: [{path: /etc/a, target: /b}]}") + "---\n" + ignition("b", "{files: [{path: /etc/a/c}]}"), "", "contradict each other"},
		{"When a kubelet field is unknown, it should name the field", kubernetes, "kind: KubeletConfig\nmetadata: {name: typo}\nspec: {kubeletConfig: {maxPod: 1}}", "", `unknown field "maxPod"`},
		{"When a kubelet field has the wrong type, it should return an error", kubernetes, "kind: KubeletConfig\nmetadata: {name: typo}\nspec: {kubeletConfig: {maxPods: many}}", "", "does not fit"},
		{"When a kubelet field belongs to the cluster, it should return an error", kubernetes, "kind: KubeletConfig\nmetadata: {name: own}\nspec: {kubeletConfig: {clusterDNS: null}}", "", "clusterDNS, which belongs to the cluster"},
		{"When a mirror changes the path of the image, it should show which paths are possible", kubernetes,
			"kind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageDigestMirrors: [{source: a.example/x, mirrors: [b.example/y]}]}", "", "must end in"},
		{"When NeverContactSource is set for a complete registry, it should be honoured", kubernetes,
			"kind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageDigestMirrors: [{source: a.example, mirrors: [b.example], mirrorSourcePolicy: NeverContactSource}]}", "NeverContactSource", ""},
		{"When NeverContactSource is set without mirrors, it should ask for at least one mirror", kubernetes,
			"kind: ImageTagMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: [{source: a.example, mirrorSourcePolicy: NeverContactSource}]}", "", "at least one mirror"},
		{"When the name of a source has dot segments, it should be rejected", kubernetes,
			"kind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageDigestMirrors: [{source: \"../../x\", mirrors: [b.example]}]}", "", `".." is not a registry`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			config, err := nodeinput.Read(tc.text, tc.distribution)
			if tc.refusal != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.refusal)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if tc.want == "" {
				g.Expect(config.Documents).To(BeEmpty())
				return
			}
			g.Expect(config.Documents).To(ConsistOf(ContainSubstring(tc.want)))
		})
	}
}

func TestReadAgain(t *testing.T) {
	t.Run("When its own output is read again, it should return the same documents", func(t *testing.T) {
		g := NewWithT(t)
		first, err := nodeinput.Read("{\"kind\":\"MachineConfig\",\"metadata\":{\"name\":\"a\"}}\n---\nkind: KubeletConfig\nmetadata: {name: b}\nspec: {kubeletConfig: {maxPods: 250}}\n", releaseinfo.Kubernetes)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(first.Documents).To(HaveLen(2))
		again, err := nodeinput.Read(first.Documents[0]+"\n---\n"+first.Documents[1], releaseinfo.Kubernetes)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(first))
		configuration := map[string]any{"maxPods": 110, "failSwapOn": false}
		again.Kubelet[0].Apply(configuration)
		g.Expect(configuration).To(Equal(map[string]any{"maxPods": 250.0, "failSwapOn": false}))
	})
}
