// SPDX-License-Identifier: Apache-2.0

package nodeinput_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// machineConfig returns a MachineConfig with a spec in YAML's flow form.
func machineConfig(spec string) string {
	return "kind: MachineConfig\nmetadata: {name: mine}\nspec: " + spec + "\n"
}

// TestAppliers checks that settings which the applier does not support are rejected before a machine is created.
// node-agent changes a running operating system; Ignition provisions one.
func TestAppliers(t *testing.T) {
	config := func(rest string) string { return machineConfig("{config: {ignition: {version: 3.4.0}" + rest + "}}") }
	for name, tc := range map[string]struct{ text, ignition, agent string }{
		"a file with contents":    {config(`, storage: {files: [{path: /etc/a, contents: {source: "data:,a"}, append: [{source: "data:,b"}]}]}`), "", ""},
		"a file without contents": {config(`, storage: {files: [{path: /etc/a}]}`), "", ""},
		"a unit":                  {config(`, systemd: {units: [{name: a.service, enabled: true}]}`), "", ""},
		"a file from a URL": {config(`, storage: {files: [{path: /etc/a, contents: {source: "https://web.example/a"}}]}`), "",
			"fetches the contents of file /etc/a"},
		"a file with appended contents from a URL": {config(`, storage: {files: [{path: /etc/a, contents: {source: "data:,a"}, append: [{source: "https://web.example/a"}]}]}`), "",
			"fetches the contents of file /etc/a"},
		"a disk":                           {config(`, storage: {disks: [{device: /dev/sda}]}`), "", "lay them out in MAAS"},
		"a RAID":                           {config(`, storage: {raid: [{name: md, level: raid1, devices: [/dev/sda, /dev/sdb]}]}`), "", "lay them out in MAAS"},
		"a file system":                    {config(`, storage: {filesystems: [{device: /dev/sda, format: ext4}]}`), "", "lay them out in MAAS"},
		"an encrypted disk":                {config(`, storage: {luks: [{name: a, device: /dev/sda}]}`), "", "lay them out in MAAS"},
		"another config to merge":          {machineConfig(`{config: {ignition: {version: 3.4.0, config: {merge: [{source: "https://web.example/a"}]}}}}`), "", "fetches another config"},
		"another config that replaces it":  {machineConfig(`{config: {ignition: {version: 3.4.0, config: {replace: {source: "https://web.example/a"}}}}}`), "", "fetches another config"},
		"an argument to remove":            {config(`, kernelArguments: {shouldNotExist: [quiet]}`), "", "removes kernel arguments"},
		"an argument to add":               {config(`, kernelArguments: {shouldExist: [quiet]}`), "", ""},
		"an argument with two words":       {config(`, kernelArguments: {shouldExist: ["a; reboot"]}`), "", "spec.config.kernelArguments: the argument"},
		"kernel arguments":                 {machineConfig(`{kernelArguments: ["quiet", "mitigations=off nosmt"]}`), "cannot honour with Ignition", ""},
		"arguments in one string":          {machineConfig(`{kernelArguments: "quiet"}`), "cannot honour with Ignition", "is not a list of strings"},
		"a quoted argument":                {machineConfig(`{kernelArguments: ["dyndbg=\"file a\""]}`), "cannot honour with Ignition", "use letters, digits"},
		"an argument with a shell command": {machineConfig(`{kernelArguments: ["a=$(reboot)"]}`), "cannot honour with Ignition", "use letters, digits"},
		"no kernel arguments":              {machineConfig(`{kernelArguments: []}`), "", ""},
		"an old version of Ignition":       {machineConfig(`{config: {ignition: {version: 2.2.0}}}`), "not a valid Ignition config", "not a valid Ignition config"},
	} {
		t.Run("When a MachineConfig has "+name+", it should be accepted or rejected by each applier", func(t *testing.T) {
			for by, refusal := range map[nodeinput.Applier]string{nodeinput.ByIgnition: tc.ignition, nodeinput.ByNodeAgent: tc.agent} {
				g := NewWithT(t)
				_, err := nodeinput.ReadFor(tc.text, releaseinfo.Kubernetes, by)
				if refusal == "" {
					g.Expect(err).NotTo(HaveOccurred())
					continue
				}
				g.Expect(err).To(MatchError(And(ContainSubstring(refusal), ContainSubstring(`MachineConfig "mine"`))))
			}
		})
	}
	t.Run("When several MachineConfigs add arguments, it should return them one by one in the order of names", func(t *testing.T) {
		text := "kind: MachineConfig\nmetadata: {name: b}\nspec: {kernelArguments: [third]}\n---\n" +
			"kind: MachineConfig\nmetadata: {name: a}\nspec: {kernelArguments: [\"first  second=1,2:/x@y%z+w-v\"]}\n"
		read, err := nodeinput.ReadFor(text, releaseinfo.Kubernetes, nodeinput.ByNodeAgent)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(read.KernelArguments).To(Equal([]string{"first", "second=1,2:/x@y%z+w-v", "third"}))
	})
	t.Run("When the payload is OpenShift's, it should leave the documents to OpenShift", func(t *testing.T) {
		_, err := nodeinput.ReadFor(machineConfig(`{kernelType: realtime, kernelArguments: ["a b;c"]}`), releaseinfo.OpenShift, nodeinput.ByIgnition)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

// TestEmptyFields covers typed clients, which serialize fields that are not set.
func TestEmptyFields(t *testing.T) {
	for _, empty := range []string{"null", `""`, "[]", "{}", "false"} {
		_, err := nodeinput.Read(machineConfig("{kernelType: "+empty+", fips: "+empty+", extensions: "+empty+"}"), releaseinfo.Kubernetes)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), empty)
	}
	for _, set := range []string{"0", `"x"`, "[null]", "true", "{a: null}"} {
		_, err := nodeinput.Read(machineConfig("{fips: "+set+"}"), releaseinfo.Kubernetes)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("sets spec.fips")), set)
	}
}

// TestWholeObjects checks that the output of `kubectl get -o yaml` is accepted as a document.
func TestWholeObjects(t *testing.T) {
	text := "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: mine, uid: x, resourceVersion: \"7\"}\n" +
		"spec: {config: {ignition: {version: 3.2.0}}}\nstatus: {conditions: []}\n"
	for _, distribution := range []releaseinfo.Distribution{releaseinfo.Kubernetes, releaseinfo.OpenShift} {
		_, err := nodeinput.Read(text, distribution)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
}

// TestReserved covers fields whose change would lock the control plane out of the node.
func TestReserved(t *testing.T) {
	for field, value := range map[string]string{
		"apiVersion": "x", "kind": "x", "authentication": "{anonymous: {enabled: true}}", "authorization": "{mode: AlwaysAllow}", "clusterDNS": "[10.0.0.1]",
		"clusterDomain": "other", "rotateCertificates": "false", "serverTLSBootstrap": "false", "staticPodPath": "/tmp",
	} {
		t.Run("When a KubeletConfig sets "+field+", it should return an error", func(t *testing.T) {
			_, err := nodeinput.Read("kind: KubeletConfig\nmetadata: {name: mine}\nspec: {kubeletConfig: {"+field+": "+value+"}}\n", releaseinfo.Kubernetes)
			NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("it sets "+field), ContainSubstring(`"mine"`))))
		})
	}
	t.Run("When its patch is not an object, it should return an error", func(t *testing.T) {
		_, err := nodeinput.Read("kind: KubeletConfig\nmetadata: {name: mine}\nspec: {kubeletConfig: [maxPods]}\n", releaseinfo.Kubernetes)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("spec.kubeletConfig is not an object")))
	})
}

func TestKubeletPatches(t *testing.T) {
	for name, tc := range map[string]struct {
		patch      string
		have, want map[string]any
	}{
		"a number":                            {"{maxPods: 250}", map[string]any{"maxPods": 110}, map[string]any{"maxPods": 250.0}},
		"a field of an object":                {"{evictionHard: {memory.available: 1Gi}}", map[string]any{"evictionHard": map[string]any{"memory.available": "1Mi", "nodefs.available": "5%"}}, map[string]any{"evictionHard": map[string]any{"memory.available": "1Gi", "nodefs.available": "5%"}}},
		"a new object":                        {"{systemReserved: {cpu: 500m}}", map[string]any{}, map[string]any{"systemReserved": map[string]any{"cpu": "500m"}}},
		"an object in place of another value": {"{systemReserved: {cpu: 500m}}", map[string]any{"systemReserved": "x"}, map[string]any{"systemReserved": map[string]any{"cpu": "500m"}}},
		"null":                                {"{maxPods: null, podsPerCore: 1}", map[string]any{"maxPods": 110}, map[string]any{"podsPerCore": 1.0}},
		"null in an object":                   {"{evictionHard: {memory.available: null}}", map[string]any{"evictionHard": map[string]any{"memory.available": "1Mi"}}, map[string]any{"evictionHard": map[string]any{}}},
		"a list":                              {"{allowedUnsafeSysctls: [a]}", map[string]any{"allowedUnsafeSysctls": []any{"b", "c"}}, map[string]any{"allowedUnsafeSysctls": []any{"a"}}},
	} {
		t.Run("When a KubeletConfig patches "+name+", it should merge as RFC 7386 says", func(t *testing.T) {
			read, err := nodeinput.Read("kind: KubeletConfig\nmetadata: {name: mine}\nspec: {kubeletConfig: "+tc.patch+"}\n", releaseinfo.Kubernetes)
			if err != nil {
				t.Fatal(err)
			}
			read.Kubelet[0].Apply(tc.have)
			read.Kubelet[0].Apply(tc.have) // Applying a patch again changes nothing.
			if diff := cmp.Diff(tc.want, tc.have); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestOrder checks that the order in which a NodePool lists its ConfigMaps has no effect, except for documents of the
// same name.
func TestOrder(t *testing.T) {
	one := "kind: KubeletConfig\nmetadata: {name: a}\nspec: {kubeletConfig: {maxPods: 1}}\n"
	two := "kind: KubeletConfig\nmetadata: {name: b}\nspec: {kubeletConfig: {maxPods: 2}}\n"
	for _, text := range []string{one + "---\n" + two, two + "---\n" + one} {
		g := NewWithT(t)
		read, err := nodeinput.Read(text, releaseinfo.Kubernetes)
		g.Expect(err).NotTo(HaveOccurred())
		configuration := map[string]any{}
		for _, patch := range read.Kubelet {
			patch.Apply(configuration)
		}
		g.Expect(configuration).To(Equal(map[string]any{"maxPods": 2.0}))
	}
}
