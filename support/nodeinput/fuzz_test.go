// SPDX-License-Identifier: Apache-2.0

package nodeinput_test

import (
	"net/url"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// FuzzRead reads the documents of a NodePool's ConfigMaps. An accepted document is accepted again in its rendered form.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"kind: MachineConfig\nmetadata: {name: a}\nspec: {config: {ignition: {version: 3.2.0}, storage: {files: [{path: /etc/a, contents: {source: 'data:,x'}}]}}}\n",
		"kind: KubeletConfig\nmetadata: {name: a, labels: 1}\nspec: {kubeletConfig: {maxPods: 10, evictionHard: null}}\n---\n---\nkind: KubeletConfig\n",
		"kind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageDigestMirrors: [{source: a.example, mirrors: [b.example/x]}]}\n",
		"kind: ImageContentSourcePolicy\nspec: {repositoryDigestMirrors: [{source: a, mirrors: ['b/\"c']}]}",
		"kind: ClusterImagePolicy\nmetadata: []\n", "kind: ContainerRuntimeConfig\nspec: x", "{", "- a", "kind: 1", "metadata: {labels: {a: 1}}\nkind: MachineConfig",
	} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, ours bool) {
		distribution := releaseinfo.OpenShift
		if ours {
			distribution = releaseinfo.Kubernetes
		}
		config, err := nodeinput.Read(text, distribution)
		if err != nil {
			return
		}
		again, err := nodeinput.Read(strings.Join(config.Documents, "\n---\n"), distribution)
		if err != nil {
			t.Fatalf("what was accepted is refused as it is handed on: %v\n%q", err, config.Documents)
		}
		if a, b := strings.Join(config.Documents, "\n---\n"), strings.Join(again.Documents, "\n---\n"); a != b {
			t.Fatalf("what is handed on changes:\n%s\n%s", a, b)
		}
		if len(again.Mirrors) != len(config.Mirrors) || len(again.Kubelet) != len(config.Kubelet) || len(again.Ignition) != len(config.Ignition) {
			t.Fatal("what is handed on says something else")
		}
	})
}

// FuzzMirrorEndpoint checks that the URLs which containerd calls have the host that the mirror names, and no other.
func FuzzMirrorEndpoint(f *testing.F) {
	f.Add("registry.example/product", "mirror.example:5000/cache/product")
	f.Add("docker.io", "mirror.example/hub/")
	f.Add("a.example", "b.example/x?y#z")
	f.Add("a.example", "b.example/\"\n")
	f.Add("a.example", "b.example/../x")
	f.Fuzz(func(t *testing.T, source, mirror string) {
		host, endpoint, err := nodeinput.MirrorEndpoint(source, mirror)
		if err != nil {
			if !strings.Contains(err.Error(), mirror) {
				t.Fatalf("the error does not name the mirror: %v", err)
			}
			return
		}
		u, err := url.Parse(endpoint)
		mirrorHost, _, _ := strings.Cut(mirror, "/")
		if err != nil || u.Scheme != "https" || u.Host != mirrorHost || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("the mirror %q of %q would be called at %q: %v", mirror, source, endpoint, err)
		}
		if !strings.HasPrefix(source, host) || strings.ContainsAny(endpoint, "\"\\\x00\n\r") {
			t.Fatalf("%q of %q would break the file of the host %q", endpoint, source, host)
		}
	})
}

// FuzzRegistries reads spec.configuration.image.
func FuzzRegistries(f *testing.F) {
	f.Add("registry.example", "lab.example:5000", "registry.example/node:1")
	f.Add("*.example", "", "node")
	f.Add("../..", "a/b", "a.b:x/y")
	f.Fuzz(func(t *testing.T, allowed, insecure, image string) {
		sources := configv1.RegistrySources{}
		for text, list := range map[string]*[]string{allowed: &sources.AllowedRegistries, insecure: &sources.InsecureRegistries} {
			if text != "" {
				*list = strings.Split(text, ",")
			}
		}
		registries, err := nodeinput.ReadRegistries(&configv1.ImageSpec{RegistrySources: sources}, nil, image)
		if err != nil {
			return
		}
		for _, host := range registries.Names() {
			if strings.ContainsAny(host, "/\\\"\n\x00 ") || strings.HasPrefix(host, ".") {
				t.Fatalf("%q would be a folder", host)
			}
		}
	})
}
