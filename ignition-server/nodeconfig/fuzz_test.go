// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"regexp"
	"strings"
	"testing"

	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// FuzzUserConfig checks that every user document which the operator accepts can be rendered.
func FuzzUserConfig(f *testing.F) {
	f.Add(fullInput().Config)
	f.Add(machineConfig("a", "/etc/a", "x"))
	f.Add("kind: KubeletConfig\nmetadata: {name: a}\nspec: {kubeletConfig: {maxPods: 10, evictionHard: {memory.available: 1Gi}}}\n")
	f.Add("kind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageDigestMirrors: [{source: a.example, mirrors: [b.example/x]}]}\n")
	f.Add("kind: MachineConfig\nspec: {config: {ignition: {version: 3.0.0}, systemd: {units: [{name: kubelet.service, mask: true}]}}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := nodeinput.Read(text, releaseinfo.Kubernetes); err != nil {
			return
		}
		in := minimalInput()
		in.Config = text
		if _, err := Render(in); err != nil && !strings.Contains(err.Error(), "with the MachineConfigs merged in is invalid") &&
			!strings.Contains(err.Error(), "forbids") {
			t.Fatalf("what was accepted cannot be rendered, and it is not said why: %v", err)
		}
	})
}

// line matches the valid lines of containerd's files: a table, or a setting whose text does not end its quotes.
var line = regexp.MustCompile(`^(\[host(\."[^"\\]*")?\]|[a-z_]+ = ("[^"\\]*"|true|\[("[^"\\]*"(, )?)*\]))?$`)

// FuzzHosts renders containerd's files from tenants' registry settings.
func FuzzHosts(f *testing.F) {
	f.Add("registry.example/product", "mirror.example:5000/product")
	f.Add("docker.io", "mirror.example/hub")
	f.Add("a.example", "b.example/x\"\nskip_verify = true\n#")
	f.Fuzz(func(t *testing.T, source, mirror string) {
		in := minimalInput()
		files, err := in.registryFiles([]releaseinfo.Mirror{{Source: source, Mirrors: []string{mirror}}})
		if err != nil {
			return
		}
		for _, file := range files {
			for row := range strings.Lines(string(content(t, file))) {
				if !line.MatchString(strings.TrimSuffix(row, "\n")) {
					t.Fatalf("the mirror %q of %q makes this line of %s: %q", mirror, source, file.Path, row)
				}
			}
		}
	})
}

// FuzzProxy checks that an accepted proxy is read from the environment of units exactly as it was written.
func FuzzProxy(f *testing.F) {
	f.Add("http://user:p$a\"s`s\\w'ord 1@proxy.example:3128", ".svc,10.0.0.0/8")
	f.Add("https://proxy", "*")
	f.Add("http://a\nb", "x\x00")
	f.Fuzz(func(t *testing.T, url, direct string) {
		in := minimalInput()
		in.Proxy = nodeinput.Proxy{HTTP: url, NoProxy: direct}
		if in.Proxy.Check() != nil || url == "" {
			return
		}
		files, err := in.proxyFiles()
		if err != nil || len(files) != 1 {
			t.Fatalf("what was accepted cannot be written: %v", err)
		}
		want := []string{"HTTP_PROXY=" + url}
		if direct != "" {
			want = append(want, "NO_PROXY="+direct)
		}
		if got := environmentFile(string(content(t, files[0]))); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("%q is read as %q", want, got)
		}
	})
}
