// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	igncfg "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	gocmp "github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/vincent-petithory/dataurl"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseinfo"
)

var update = flag.Bool("update", false, "write the golden files")

func minimalInput() Input {
	return Input{
		NodePool:            "workers",
		ServiceCIDRs:        []string{"172.31.0.0/16"},
		BootstrapKubeconfig: []byte("kind: Config\n"),
		ClientCA:            []byte("client CA\n"),
		NodeImage:           "registry.example/node:1.36.3",
		PodImage:            "registry.example/pod:1",
	}
}

func fullInput() Input {
	in := minimalInput()
	in.ServiceCIDRs = append(in.ServiceCIDRs, "fd02::/112")
	in.PullSecret = []byte(`{"auths":{"registry.example":{"username":"u","password":"p"}}}`)
	in.TrustBundle = []byte("trust bundle\n")
	in.SSHKeys = []string{"ssh-ed25519 AAAA someone\n", ""}
	in.Mirrors = []releaseinfo.Mirror{
		{Source: "registry.example/product", Mirrors: []string{"mirror.example:5000/product", "mirror.example:5000/cache/product"}},
		{Source: "docker.io", Mirrors: []string{"mirror.example:5000/hub"}},
	}
	in.Proxy = nodeinput.Proxy{HTTP: "http://proxy.example:3128", HTTPS: `http://user:pa$s@proxy.example:3128`, NoProxy: ".svc,172.31.0.0/16,api.example"}
	in.ProxyCA = []byte("proxy CA\n")
	in.Image = &configv1.ImageSpec{RegistrySources: configv1.RegistrySources{
		InsecureRegistries: []string{"lab.example:5000"}, BlockedRegistries: []string{"blocked.example"},
	}}
	in.RegistryCAs = map[string][]byte{"own.example:8443": []byte("own CA\n")}
	in.Config = `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 50-motd, labels: {machineconfiguration.openshift.io/role: worker}}
spec:
  kernelArguments: []
  fips: false
  config:
    ignition: {version: 3.2.0}
    storage:
      files:
      - path: /etc/motd
        mode: 420
        contents: {source: "data:,hello"}
    passwd:
      users:
      - name: core
        sshAuthorizedKeys: ["ssh-ed25519 BBBB other"]
---
apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata: {name: more-pods}
spec:
  kubeletConfig:
    maxPods: 250
    systemReserved: {cpu: 500m}
---
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata: {name: mirrors}
spec:
  imageDigestMirrors:
  - source: quay.example/team
    mirrors: [mirror.example:5000/team]
  - source: never.example
    mirrors: [mirror.example:5000/never]
    mirrorSourcePolicy: NeverContactSource
`
	return in
}

func TestRenderGolden(t *testing.T) {
	tests := []struct {
		name, golden string
		in           Input
	}{
		{"When only required inputs are set, it should render a minimal node", "minimal.txt", minimalInput()},
		{"When all inputs are set, it should render all of them", "full.txt", fullInput()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			raw, err := Render(tt.in)
			g.Expect(err).NotTo(HaveOccurred())
			got := readable(t, raw)
			path := filepath.Join("testdata", tt.golden)
			if *update {
				g.Expect(os.WriteFile(path, []byte(got), 0o644)).To(Succeed())
			}
			want, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			if diff := gocmp.Diff(string(want), got); diff != "" {
				t.Errorf("run the test with -update when this is meant (-want +got):\n%s", diff)
			}
		})
	}
}

// readable renders an Ignition config as a readable list of the files on the machine.
func readable(t *testing.T, raw []byte) string {
	t.Helper()
	cfg := parse(t, raw)
	var b strings.Builder
	fmt.Fprintf(&b, "ignition %s\n", cfg.Ignition.Version)
	for _, u := range cfg.Passwd.Users {
		fmt.Fprintf(&b, "user %s %q\n", u.Name, u.SSHAuthorizedKeys)
	}
	for _, d := range cfg.Storage.Directories {
		fmt.Fprintf(&b, "folder %s %04o\n", d.Path, *d.Mode)
	}
	slices.SortFunc(cfg.Storage.Files, func(a, b types.File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range cfg.Storage.Files {
		fmt.Fprintf(&b, "\n==> %s %04o\n", f.Path, *f.Mode)
		if f.Contents.Source == nil {
			b.WriteString("(where the machine fetches it is said when it asks)\n")
		} else if filepath.Ext(f.Path) != "" || strings.HasSuffix(f.Path, "kubeconfig") {
			b.Write(content(t, f))
		}
	}
	for _, u := range cfg.Systemd.Units {
		if u.Contents != nil {
			fmt.Fprintf(&b, "\n==> unit %s enabled %t\n%s", u.Name, ptr.Deref(u.Enabled, false), *u.Contents)
		}
		for _, d := range u.Dropins {
			fmt.Fprintf(&b, "\n==> drop-in %s of unit %s\n%s", d.Name, u.Name, *d.Contents)
		}
	}
	return b.String()
}

func parse(t *testing.T, raw []byte) types.Config {
	t.Helper()
	cfg, report, err := igncfg.Parse(raw)
	if err != nil {
		t.Fatalf("%v: %s", err, report.String())
	}
	return cfg
}

func content(t *testing.T, f types.File) []byte {
	t.Helper()
	data, err := dataurl.DecodeString(*f.Contents.Source)
	if err != nil {
		t.Fatal(err)
	}
	return data.Data
}

func fileAt(t *testing.T, raw []byte, path string) []byte {
	t.Helper()
	for _, f := range parse(t, raw).Storage.Files {
		if f.Path == path {
			return content(t, f)
		}
	}
	t.Fatalf("no file %s", path)
	return nil
}

func TestRenderIsPure(t *testing.T) {
	g := NewWithT(t)
	first, err := Render(fullInput())
	g.Expect(err).NotTo(HaveOccurred())
	for range 5 {
		again, err := Render(fullInput())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(first))
	}
}

func TestKubeletConfigurationIsOfItsType(t *testing.T) {
	g := NewWithT(t)
	raw, err := Render(fullInput())
	g.Expect(err).NotTo(HaveOccurred())
	var cfg kubeletv1beta1.KubeletConfiguration
	g.Expect(yaml.UnmarshalStrict(fileAt(t, raw, "/etc/kubernetes/kubelet.yaml"), &cfg)).To(Succeed())
	g.Expect(cfg.ServerTLSBootstrap).To(BeTrue())
	g.Expect(cfg.RotateCertificates).To(BeTrue())
	g.Expect(*cfg.Authentication.Anonymous.Enabled).To(BeFalse())
	g.Expect(cfg.ClusterDNS).To(Equal([]string{"172.31.0.10", "fd02::a"}))
	g.Expect(cfg.MaxPods).To(BeEquivalentTo(250))
}

func TestUserFileWins(t *testing.T) {
	g := NewWithT(t)
	in := minimalInput()
	in.Config = machineConfig("b", "/etc/sysctl.d/90-hypershift-node.conf", "second") + "\n---\n" +
		machineConfig("a", "/etc/sysctl.d/90-hypershift-node.conf", "first")
	raw, err := Render(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(fileAt(t, raw, "/etc/sysctl.d/90-hypershift-node.conf"))).To(Equal("second"))
}

func machineConfig(name, path, text string) string {
	return fmt.Sprintf(`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":%q},
"spec":{"config":{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":%q,"overwrite":true,"contents":{"source":"data:,%s"}}]}}}}`,
		name, path, text)
}

func TestRenderErrors(t *testing.T) {
	config := func(text string) func(*Input) { return func(in *Input) { in.Config = text } }
	tests := []struct {
		name string
		edit func(*Input)
		says string
	}{
		{"When the payload has no node image, it should return an error", func(in *Input) { in.NodeImage = "" }, "names no node or pod image"},
		{"When the bootstrap kubeconfig is empty, it should return an error", func(in *Input) { in.BootstrapKubeconfig = nil }, "bootstrap kubeconfig is empty"},
		{"When the client CA is empty, it should return an error", func(in *Input) { in.ClientCA = nil }, "CA of the kubelet's clients is empty"},
		{"When the service network is missing, it should return an error that names the field", func(in *Input) { in.ServiceCIDRs = nil }, "set spec.networking.serviceNetwork"},
		{"When the service network is malformed, it should return an error", func(in *Input) { in.ServiceCIDRs = []string{"x"} }, `"x" is not a CIDR`},
		{"When the service network is too small, it should return an error", func(in *Input) { in.ServiceCIDRs = []string{"10.0.0.0/29"} }, "use a larger network"},
		{"When the pull secret is malformed, it should return an error", func(in *Input) { in.PullSecret = []byte("x") }, "not a valid .dockerconfigjson"},
		{
			"When a mirror changes the path, it should return an error that names the supported form",
			func(in *Input) {
				in.Mirrors = []releaseinfo.Mirror{{Source: "a.example/x", Mirrors: []string{"b.example/y"}}}
			},
			"must end in",
		},
		{"When a document is not YAML, it should return an error", config("{"), "not YAML"},
		{"When a kind is unknown, it should return an error that names the kind", config("kind: ContainerRuntimeConfig\nmetadata: {name: crio}\n"), `ContainerRuntimeConfig "crio" is not a configuration of Kubernetes nodes`},
		{
			"When a MachineConfig sets an unsupported field, it should return an error that names the field",
			config("kind: MachineConfig\nmetadata: {name: rt}\nspec: {kernelType: realtime}\n"), `MachineConfig "rt" sets spec.kernelType`,
		},
		{
			"When a MachineConfig has an old Ignition version, it should name the supported versions",
			config("kind: MachineConfig\nmetadata: {name: old}\nspec: {config: {ignition: {version: 2.2.0}}}\n"), "version 3.0 to 3.4.0",
		},
		{
			"When a KubeletConfig overrides a cluster setting, it should return an error",
			config("kind: KubeletConfig\nmetadata: {name: own}\nspec: {kubeletConfig: {clusterDNS: [1.1.1.1]}}\n"), "clusterDNS, which belongs to the cluster",
		},
		{
			"When a KubeletConfig has an unknown field, it should return an error that names the field",
			config("kind: KubeletConfig\nmetadata: {name: typo}\nspec: {kubeletConfig: {maxPod: 1}}\n"), `unknown field "maxPod"`,
		},
		{
			"When a mirror set blocks part of a registry, it should suggest a registry as source",
			config("kind: ImageDigestMirrorSet\nmetadata: {name: m}\nspec: {imageDigestMirrors: [{source: a.example/x, mirrors: [b.example/x], mirrorSourcePolicy: NeverContactSource}]}\n"),
			"name a registry as source",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := minimalInput()
			tt.edit(&in)
			_, err := Render(in)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.says)))
		})
	}
}
