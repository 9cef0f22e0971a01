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
		{"When it is a MachineConfig it should be for workers", openShift, "kind: MachineConfig\nmetadata: {name: a}", "machineconfiguration.openshift.io/role: worker", ""},
		{"When it is a KubeletConfig it should select built-in pools", openShift, "kind: KubeletConfig\nmetadata: {name: a}", "machineconfiguration.openshift.io/mco-built-in: \"\"", ""},
		{"When it is a ContainerRuntimeConfig it should select built-in pools", openShift, "kind: ContainerRuntimeConfig\nmetadata: {name: a}", "machineconfiguration.openshift.io/mco-built-in: \"\"", ""},
		{"When sources are mirrored in the old way it should be handed on to OpenShift", openShift, "kind: ImageContentSourcePolicy\nmetadata: {name: a}", "ImageContentSourcePolicy", ""},
		{"When digests are mirrored it should be handed on to OpenShift", openShift, "kind: ImageDigestMirrorSet\nmetadata: {name: a}", "ImageDigestMirrorSet", ""},
		{"When it is an image policy it should get its stable version", openShift, "apiVersion: config.openshift.io/v1alpha1\nkind: ClusterImagePolicy", "apiVersion: config.openshift.io/v1\n", ""},
		{"When it is another kind it should say which there are", openShift, "kind: Deployment", "", `Deployment "" is not a configuration of OpenShift nodes: use one of MachineConfig`},
		{"When it has no kind it should say so", kubernetes, "metadata: {name: a}", "", "a document without kind"},
		{"When it is no YAML it should say so", openShift, "a: [", "", "it is not YAML"},
		{"When it is a list it should say so", openShift, "- a\n", "", "it is not YAML"},
		{"When it is empty it should be nothing", openShift, "---\n# comment\n---\n", "", ""},
		{"When tags are mirrored it should be honoured by Kubernetes", kubernetes,
			"kind: ImageTagMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: [{source: a.example, mirrors: [b.example]}]}", "ImageTagMirrorSet", ""},
		{"When tags are mirrored it should be handed on to OpenShift", openShift, "kind: ImageTagMirrorSet\nmetadata: {name: a}", "ImageTagMirrorSet", ""},
		{"When a kind is for CRI-O it should be refused for Kubernetes", kubernetes, "kind: ContainerRuntimeConfig\nmetadata: {name: crio}", "", `ContainerRuntimeConfig "crio" is not a configuration of Kubernetes nodes`},
		{"When a kernel is asked for it should be refused for Kubernetes", kubernetes,
			"kind: MachineConfig\nmetadata: {name: rt}\nspec: {kernelType: realtime}", "", `MachineConfig "rt" sets spec.kernelType`},
		{"When spec is misspelt, it should name the unknown field", kubernetes, "kind: MachineConfig\nmetadata: {name: a}\nspecs: {config: {}}", "", "has an unknown field specs; remove it"},
		{"When spec is no object it should say so", kubernetes, "kind: MachineConfig\nmetadata: {name: a}\nspec: [a]", "", `the spec of MachineConfig "a" is not an object`},
		{"When a file has no path it should say so", kubernetes, ignition("a", "{files: [{mode: 420}]}"), "", "not a valid Ignition config"},
		{"When two configs contradict each other it should say so", kubernetes,
			ignition("a", "{links: [{path: /etc/a, target: /b}]}") + "---\n" + ignition("b", "{files: [{path: /etc/a/c}]}"), "", "contradict each other"},
		{"When a kubelet field is unknown it should name it", kubernetes, "kind: KubeletConfig\nmetadata: {name: typo}\nspec: {kubeletConfig: {maxPod: 1}}", "", `unknown field "maxPod"`},
		{"When a kubelet field is of another type it should say so", kubernetes, "kind: KubeletConfig\nmetadata: {name: typo}\nspec: {kubeletConfig: {maxPods: many}}", "", "does not fit"},
		{"When a kubelet field is the cluster's it should say so", kubernetes, "kind: KubeletConfig\nmetadata: {name: own}\nspec: {kubeletConfig: {clusterDNS: null}}", "", "clusterDNS, which belongs to the cluster"},
		{"When a mirror moves the image it should say what is possible", kubernetes,
			"kind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageDigestMirrors: [{source: a.example/x, mirrors: [b.example/y]}]}", "", "must end in"},
		{"When a source is never to be asked it should be honoured of a registry", kubernetes,
			"kind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageDigestMirrors: [{source: a.example, mirrors: [b.example], mirrorSourcePolicy: NeverContactSource}]}", "NeverContactSource", ""},
		{"When a source without mirrors is never to be asked it should say what is needed", kubernetes,
			"kind: ImageTagMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: [{source: a.example, mirrorSourcePolicy: NeverContactSource}]}", "", "at least one mirror"},
		{"When a mirror would leave its folder it should be refused", kubernetes,
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
	t.Run("When documents are read again as they were handed on, they should be the same", func(t *testing.T) {
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
