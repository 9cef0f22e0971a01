// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	gocmp "github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/nodeplan"
)

func planned(t *testing.T, in Input) *nodeplan.Plan {
	t.Helper()
	raw, err := RenderPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := nodeplan.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestPlanGolden(t *testing.T) {
	for golden, in := range map[string]Input{"minimal-plan.txt": minimalInput(), "full-plan.txt": fullInput()} {
		t.Run("When the plan is rendered, it should match the golden file "+golden, func(t *testing.T) {
			got := readablePlan(planned(t, in))
			path := filepath.Join("testdata", golden)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(string(want), got); diff != "" {
				t.Errorf("run the test with -update when this is meant (-want +got):\n%s", diff)
			}
		})
	}
}

func readablePlan(plan *nodeplan.Plan) string {
	var b strings.Builder
	for _, u := range plan.Users {
		fmt.Fprintf(&b, "user %s %q\n", u.Name, u.SSHKeys)
	}
	for _, d := range plan.Directories {
		fmt.Fprintf(&b, "folder %s %04o\n", d.Path, d.Mode)
	}
	for _, f := range plan.Files {
		fmt.Fprintf(&b, "file %s %04o\n", f.Path, f.Mode)
	}
	for _, image := range []nodeplan.Image{plan.Node, plan.Pod} {
		fmt.Fprintf(&b, "image %s\n", image.Name)
		for _, s := range image.Sources {
			fmt.Fprintf(&b, "  from %+v\n", s)
		}
	}
	fmt.Fprintf(&b, "proxy %+v\nkernel %q\n", plan.Proxy, plan.KernelArguments)
	for _, u := range plan.Units {
		fmt.Fprintf(&b, "\n==> unit %s enabled %t\n%s", u.Name, u.Enabled != nil && *u.Enabled, u.Content)
		for _, d := range u.DropIns {
			fmt.Fprintf(&b, "\n==> drop-in %s of unit %s\n%s", d.Name, u.Name, d.Content)
		}
	}
	return b.String()
}

// TestOneModel compares the two renderings. Ignition writes the same files as node-agent. In addition it writes
// node-agent, its unit, and a plan with the remaining steps.
func TestOneModel(t *testing.T) {
	g := NewWithT(t)
	raw, err := Render(fullInput())
	g.Expect(err).NotTo(HaveOccurred())
	ignition, plan := &nodeplan.Plan{}, planned(t, fullInput())
	g.Expect(addModel(ignition, parse(t, raw))).To(Succeed())
	own := func(path string) bool { return path == nodeplan.Path || path == nodeplan.Program }
	ignition.Files = slices.DeleteFunc(ignition.Files, func(f nodeplan.File) bool { return own(f.Path) })
	ignition.Units = slices.DeleteFunc(ignition.Units, func(u nodeplan.Unit) bool { return u.Name == agentUnitName })
	rest, err := nodeplan.Parse(fileAt(t, raw, nodeplan.Path))
	g.Expect(err).NotTo(HaveOccurred())
	ignition.Version, ignition.Node, ignition.Pod, ignition.PullSecret, ignition.Proxy = rest.Version, rest.Node, rest.Pod, rest.PullSecret, rest.Proxy
	if diff := gocmp.Diff(plan, ignition); diff != "" {
		t.Errorf("-node plan +Ignition:\n%s", diff)
	}
	g.Expect(rest.Files).To(BeEmpty(), "what Ignition writes node-agent does not write again")
	g.Expect(rest.Units).To(BeEmpty())
	g.Expect(rest.Users).To(BeEmpty())
}

// TestNoScripts checks that no file of a worker is a script for an interpreter.
func TestNoScripts(t *testing.T) {
	g := NewWithT(t)
	for _, f := range planned(t, fullInput()).Files {
		g.Expect(string(f.Content)).NotTo(HavePrefix("#!"), f.Path)
	}
	for _, u := range planned(t, fullInput()).Units {
		g.Expect(u.Content).NotTo(MatchRegexp(`Exec\w*=.*\b(sh|bash|python3?)\b`), u.Name)
	}
}

// TestUpgradesOfPackages checks the configuration of needrestart, which runs after unattended-upgrades. It is a line of
// Perl.
func TestUpgradesOfPackages(t *testing.T) {
	g := NewWithT(t)
	plan := planned(t, fullInput())
	i := slices.IndexFunc(plan.Files, func(f nodeplan.File) bool { return f.Path == "/etc/needrestart/conf.d/90-hypershift.conf" })
	override := regexp.MustCompile(`(?m)^\$nrconf\{override_rc\}\{qr\((.*)\)\} = 0;$`).FindSubmatch(plan.Files[i].Content)
	g.Expect(override).To(HaveLen(2), string(plan.Files[i].Content))
	kept := regexp.MustCompile(string(override[1]))
	for _, unit := range []string{runtimeUnitName, kubeletUnitName, "hypershift-node-agent.service"} {
		g.Expect(kept.MatchString(unit)).To(BeTrue(), "an upgrade of packages does not restart %s", unit)
	}
	for _, unit := range []string{"ssh.service", "containerd.service", "my-kubelet.service"} {
		g.Expect(kept.MatchString(unit)).To(BeFalse(), "%s is not ours", unit)
	}
}

func TestPlanKubelet(t *testing.T) {
	g := NewWithT(t)
	plan := planned(t, fullInput())
	i := slices.IndexFunc(plan.Files, func(f nodeplan.File) bool { return f.Path == "/etc/kubernetes/kubelet.yaml" })
	var cfg kubeletv1beta1.KubeletConfiguration
	g.Expect(yaml.UnmarshalStrict(plan.Files[i].Content, &cfg)).To(Succeed())
	g.Expect(cfg.ContainerRuntimeEndpoint).To(Equal("unix:///run/hypershift/containerd/containerd.sock"))
	g.Expect(cfg.MaxPods).To(BeEquivalentTo(250))
}

func mineOf(spec string) string {
	return "kind: MachineConfig\nmetadata: {name: mine}\nspec: " + spec + "\n"
}

func TestPlanOfMachineConfigs(t *testing.T) {
	g := NewWithT(t)
	in := minimalInput()
	in.Config = mineOf(`{kernelArguments: ["hugepages=8 quiet"], config: {ignition: {version: 3.4.0}, kernelArguments: {shouldExist: [nosmt]},
  storage: {files: [{path: /etc/a, mode: 384, user: {name: core}, group: {id: 7}, contents: {source: "data:;base64,H4sIAAAAAAACA0vKLAEAl6NFVwMAAAA=", compression: gzip}},
    {path: /etc/b, append: [{source: "data:,more"}, {}]}, {path: /etc/c, overwrite: true, contents: {source: ""}}],
    directories: [{path: /srv/d}, {path: /srv/e, mode: 448, user: {id: 7}, group: {name: ops}}], links: [{path: /etc/l, target: ../x, hard: false}, {path: /etc/h, target: /etc/a, hard: true, user: {id: 7}}]},
  systemd: {units: [{name: own.service, enabled: true, contents: "[Service]"}, {name: apt-daily.timer, mask: true}, {name: kubelet.service, dropins: [{name: 1.conf, contents: "x"}]}]},
  passwd: {groups: [{name: ops, gid: 900}, {name: daemons, system: true}, {name: old, shouldExist: false}],
    users: [{name: joe, uid: 1200, gecos: Joe, homeDir: /srv/joe, noCreateHome: true, primaryGroup: ops, noUserGroup: true, system: true, shell: /bin/sh,
      passwordHash: x, groups: [daemons], sshAuthorizedKeys: [k]}, {name: eve, shouldExist: false}]}}}`)
	plan := planned(t, in)
	g.Expect(plan.KernelArguments).To(Equal([]string{"nosmt", "hugepages=8", "quiet"}))
	g.Expect(plan.Files).To(ContainElements(
		nodeplan.File{Path: "/etc/a", Mode: 0o600, Owner: nodeplan.Owner{User: "core", Group: "7"}, Content: []byte("bit"), Keep: true},
		nodeplan.File{Path: "/etc/b", Mode: 0o644, Append: [][]byte{[]byte("more"), {}}},
		nodeplan.File{Path: "/etc/c", Mode: 0o644, Content: []byte{}},
	))
	g.Expect(plan.Directories).To(ContainElements(nodeplan.Directory{Path: "/srv/d", Mode: 0o755},
		nodeplan.Directory{Path: "/srv/e", Mode: 0o700, Owner: nodeplan.Owner{User: "7", Group: "ops"}}))
	g.Expect(plan.Links).To(ConsistOf(nodeplan.Link{Path: "/etc/l", Target: "../x"},
		nodeplan.Link{Path: "/etc/h", Target: "/etc/a", Hard: true, Owner: nodeplan.Owner{User: "7"}}))
	g.Expect(plan.Groups).To(ConsistOf(nodeplan.Group{Name: "ops", GID: ptr.To(900)}, nodeplan.Group{Name: "daemons", System: true}, nodeplan.Group{Name: "old", Absent: true}))
	g.Expect(plan.Users).To(ConsistOf(nodeplan.User{
		Name: "joe", UID: ptr.To(1200), Comment: "Joe", Home: "/srv/joe", NoHome: true, PrimaryGroup: "ops", NoUserGroup: true, System: true, Shell: "/bin/sh",
		PasswordHash: "x", Groups: []string{"daemons"}, SSHKeys: []string{"k"},
	}, nodeplan.User{Name: "eve", Absent: true}))
	units := map[string]nodeplan.Unit{}
	for _, u := range plan.Units {
		units[u.Name] = u
	}
	g.Expect(units["apt-daily.timer"]).To(Equal(nodeplan.Unit{Name: "apt-daily.timer", Masked: true}))
	g.Expect(units["own.service"].Enabled).To(HaveValue(BeTrue()))
	g.Expect(units["kubelet.service"].DropIns).To(ConsistOf(nodeplan.DropIn{Name: "1.conf", Content: "x"}))
	g.Expect(units["kubelet.service"].Enabled).To(BeNil(), "node-agent starts it when all is there")
}

func TestPlanRefusals(t *testing.T) {
	for _, tc := range []struct{ name, spec, refusal string }{
		{"When a MachineConfig changes a disk", `{config: {ignition: {version: 3.4.0}, storage: {disks: [{device: /dev/sdb, wipeTable: true}]}}}`, "lay them out in MAAS"},
		{"When a file has a remote source", `{config: {ignition: {version: 3.4.0}, storage: {files: [{path: /etc/a, contents: {source: "https://a.example/x"}}]}}}`, "put them into the config"},
		{"When a MachineConfig merges a remote config", `{config: {ignition: {version: 3.4.0, config: {merge: [{source: "https://a.example/x"}]}}}}`, "fetches another config"},
		{"When a MachineConfig removes a kernel argument", `{config: {ignition: {version: 3.4.0}, kernelArguments: {shouldNotExist: [quiet]}}}`, "removes kernel arguments"},
		{"When a kernel argument contains a shell command", `{kernelArguments: ["a$(reboot)"]}`, "cannot be given to the boot loader"},
		{"When kernelArguments is not a list", `{kernelArguments: quiet}`, "not a list of strings"},
		{"When a MachineConfig changes the kernel type", `{kernelType: realtime}`, "spec.kernelType"},
	} {
		t.Run(tc.name+", it should say what to do", func(t *testing.T) {
			in := minimalInput()
			in.Config = mineOf(tc.spec)
			_, err := RenderPlan(in)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.refusal)))
		})
	}
	t.Run("When Ignition payloads have kernel arguments, it should suggest an image with cloud-init", func(t *testing.T) {
		in := minimalInput()
		in.Config = mineOf(`{kernelArguments: [quiet]}`)
		_, err := Render(in)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("use an image that runs cloud-init")))
	})
}

// TestProxyOfUnits checks the variables that programs read. Some programs treat an empty variable as a proxy without a
// name.
func TestProxyOfUnits(t *testing.T) {
	for _, tc := range []struct {
		name  string
		proxy nodeinput.Proxy
		want  string
	}{
		{"When there is no proxy, it should write no file", nodeinput.Proxy{}, ""},
		{"When only HTTPS uses a proxy, it should set only HTTPS_PROXY", nodeinput.Proxy{HTTPS: "http://p:3128"}, "HTTPS_PROXY=\"http://p:3128\"\n"},
		{"When a password has shell metacharacters, it should escape them", nodeinput.Proxy{HTTP: "http://u:a$b@p:3128", NoProxy: ".svc"},
			"HTTP_PROXY=\"http://u:a\\$b@p:3128\"\nNO_PROXY=\".svc\"\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in, got := minimalInput(), ""
			in.Proxy = tc.proxy
			plan := planned(t, in)
			if at := slices.IndexFunc(plan.Files, func(f nodeplan.File) bool { return f.Path == nodeplan.ProxyEnvironment }); at >= 0 {
				got = string(plan.Files[at].Content)
				NewWithT(t).Expect(plan.Files[at].Mode).To(BeEquivalentTo(0o600), "a password may be in it")
			}
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

// TestContent checks the size limit: a small compressed file must not fill the memory of the server or the disk of each
// node.
func TestContent(t *testing.T) {
	packed := func(size int64) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := io.CopyN(w, zeroes{}, size); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return "data:;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
	}
	for _, tc := range []struct{ name, source, refusal string }{
		{"When a compressed file has the maximum size, it should accept it", packed(maxContent), ""},
		{"When a compressed file exceeds the maximum size, it should return an error that names the limit", packed(maxContent + 1), "larger than 33554432 bytes"},
		{"When contents are not gzip but should be, it should return an error", "data:,plain", "not gzip"},
		{"When compressed contents are truncated, it should return an error", "data:;base64,H4sIAAAAAAACA0vKLA==", "unexpected EOF"},
		{"When contents are not a data URL, it should return an error", "https://a.example/x", "not a data URL"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			plan := &nodeplan.Plan{}
			resource := types.Resource{Source: ptr.To(tc.source), Compression: ptr.To("gzip")}
			err := addModel(plan, types.Config{Storage: types.Storage{Files: []types.File{{
				Node: types.Node{Path: "/etc/zeroes"}, FileEmbedded1: types.FileEmbedded1{Contents: resource}}}}})
			if tc.refusal != "" {
				g.Expect(err).To(MatchError(And(HavePrefix("file /etc/zeroes: "), ContainSubstring(tc.refusal))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(plan.Files[0].Content).To(HaveLen(maxContent))
		})
	}
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestPlanSources(t *testing.T) {
	t.Run("When a registry is insecure or has its own CA, node-agent should use the same settings as containerd", func(t *testing.T) {
		g := NewWithT(t)
		in := fullInput()
		in.NodeImage = "own.example:8443/a/node@sha256:1"
		in.PodImage = "lab.example:5000/pod:1"
		in.Image.RegistrySources = configv1.RegistrySources{InsecureRegistries: []string{"lab.example:5000"}}
		plan := planned(t, in)
		g.Expect(plan.Node.Sources).To(Equal([]nodeplan.Source{{Image: "own.example:8443/a/node@sha256:1", CAs: []string{
			"/etc/containerd/certs.d/additional-trust-bundle.crt", "/etc/containerd/certs.d/proxy-ca.crt", "/etc/containerd/certs.d/own.example:8443/ca.crt",
		}}}))
		g.Expect(plan.Pod.Sources).To(HaveLen(1))
		g.Expect(plan.Pod.Sources[0].Insecure).To(BeTrue())
	})
}
