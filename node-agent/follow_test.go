// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/update"
	"github.com/openshift/hypershift/support/nodeplan"
)

// newNode returns a node with configuration old, and an ignition-server with configuration new. They differ in the
// release, kubelet.yaml, one file and one unit.
func newNode(t *testing.T) (*machine, *follower) {
	t.Helper()
	m := newMachine(t)
	m.plan.ConfigHash = "old"
	m.plan.Units = append(m.plan.Units, nodeplan.Unit{Name: nodeplan.FollowUnit, Content: "[Service]\n"})
	m.plan.Files = append(m.plan.Files, nodeplan.File{Path: "/etc/kubernetes/kubelet.yaml", Mode: 0o644, Content: []byte("maxPods: 1\n")},
		nodeplan.File{Path: "/etc/only-old", Mode: 0o640, Content: []byte("old\n")}, nodeplan.File{Path: nodeplan.ServerCA, Mode: 0o644, Content: []byte(m.read(nodeplan.ServerCA))})
	m.join()
	m.mustRun()
	m.later(func(p *nodeplan.Plan) {
		p.ConfigHash = "new"
		p.Node, p.Pod.Name = m.release("2"), m.push("pod2", map[string]string{"pause": "pause"})
		p.Pod.Sources = []nodeplan.Source{{Image: p.Pod.Name, CAs: p.Node.Sources[0].CAs}}
		p.Files = slices.DeleteFunc(p.Files, func(f nodeplan.File) bool { return f.Path == "/etc/only-old" || f.Path == nodeplan.BootstrapKubeconfig })
		p.Files = append(p.Files, nodeplan.File{Path: "/etc/only-new", Mode: 0o600, Content: []byte("new\n"), Keep: true})
		m.edit(p, "/etc/kubernetes/kubelet.yaml", "maxPods: 2\n")
		p.Units = slices.DeleteFunc(p.Units, func(u nodeplan.Unit) bool { return u.Name == "own.service" })
		p.Units = append(p.Units, nodeplan.Unit{Name: "added.service", Content: "[Service]\n", Enabled: new(true)})
	})
	return m, m.follower()
}

// later sets the plan of a later configuration, an edited copy of the current plan.
func (m *machine) later(edit func(*nodeplan.Plan)) {
	m.t.Helper()
	raw, err := json.Marshal(m.plan)
	m.Expect(err).NotTo(HaveOccurred())
	m.next = nodeplan.Plan{}
	m.Expect(json.Unmarshal(raw, &m.next)).To(Succeed())
	edit(&m.next)
}

func (m *machine) edit(p *nodeplan.Plan, path, content string) {
	m.t.Helper()
	at := slices.IndexFunc(p.Files, func(f nodeplan.File) bool { return f.Path == path })
	m.Expect(at).To(BeNumerically(">=", 0))
	p.Files[at].Content = []byte(content)
}

// release pushes the node image of a different version.
func (m *machine) release(version string) nodeplan.Image {
	files := nodeFiles()
	for path, text := range files {
		files[path] = strings.ReplaceAll(text, "the release", version)
	}
	files["opt/cni/bin/bridge"] = "bridge of " + version
	name := m.push("node"+version, files)
	return nodeplan.Image{Name: name, Sources: []nodeplan.Source{{Image: name, CAs: m.plan.Node.Sources[0].CAs}}}
}

// isNew checks that the machine runs configuration new completely, and has no files that only configuration old has.
func (m *machine) isNew() {
	m.t.Helper()
	m.Expect(m.read("/opt/hypershift/node/current/usr/bin/kubelet")).To(Equal("kubelet of 2"))
	m.Expect(m.read("/opt/cni/bin/bridge")).To(Equal("bridge of 2"))
	m.Expect(m.read("/etc/kubernetes/kubelet.yaml")).To(Equal("maxPods: 2\n"))
	m.Expect(m.read("/etc/hypershift/containerd.toml")).To(ContainSubstring(m.next.Pod.Name))
	m.Expect(m.read("/etc/only-new")).To(Equal("new\n"))
	for _, gone := range []string{"/etc/only-old", "/etc/systemd/system/own.service", "/etc/systemd/system/multi-user.target.wants/own.service", "/var/lib/hypershift/update"} {
		if gone == "/var/lib/hypershift/update" {
			left, err := filepath.Glob(m.host.Path(gone + "/*"))
			m.Expect(err).NotTo(HaveOccurred())
			m.Expect(left).To(BeEmpty())
			continue
		}
		m.Expect(m.host.Exists(gone)).To(BeFalse(), gone)
	}
	m.Expect(m.host.Exists("/etc/systemd/system/multi-user.target.wants/added.service")).To(BeTrue())
	m.Expect(m.read(nodeplan.BootstrapKubeconfig)).To(Equal("kind: Config\n"), "a Node keeps what it is not sent")
	slots, err := filepath.Glob(m.host.Path("/opt/hypershift/node/sha256-*"))
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(slots).To(HaveLen(1), "the former release makes room")
}

// without removes the files that an update may leave behind.
func without(files map[string]string) map[string]string {
	for path := range files {
		if strings.HasPrefix(path, "/var/lib/hypershift/update/") {
			delete(files, path)
		}
	}
	return files
}

func TestFollow(t *testing.T) {
	t.Run("When no configuration is desired, it should report the current configuration once", func(t *testing.T) {
		m, f := newNode(t)
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		m.Expect(m.guest.patches).To(Equal([]string{"Done old"}))
	})
	t.Run("When another configuration is desired, it should apply it and report Done", func(t *testing.T) {
		m, f := newNode(t)
		m.want("new")
		m.commands = nil
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		m.isNew()
		m.Expect(m.guest.patches).To(Equal([]string{"Working old", "Done new"}))
		m.Expect(m.guest.kubelet).To(Equal("kubelet of 2"))
		m.Expect(m.images).To(Equal([]string{m.next.Pod.Name}), "its sandbox is there before the restart")
		m.Expect(m.commands).To(ContainElements("systemctl disable --now own.service", "systemctl restart --no-block hypershift-containerd.service kubelet.service"))
		m.Expect(m.commands).NotTo(ContainElement(ContainSubstring("reboot")))
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		m.Expect(m.guest.patches).To(HaveLen(2), "a settled machine writes nothing")
		before := without(m.state())
		m.mustRun()
		m.Expect(without(m.state())).To(Equal(before), "the next boot changes nothing")
	})
	t.Run("When only the configuration changes, it should not pull a release", func(t *testing.T) {
		m, f := newNode(t)
		m.later(func(p *nodeplan.Plan) {
			p.ConfigHash = "new"
			m.edit(p, "/etc/kubernetes/kubelet.yaml", "maxPods: 3\n")
		})
		m.images = []string{m.plan.Pod.Name}
		pulls := m.registry.Requests()
		m.want("new")
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		m.Expect(m.registry.Requests()).To(Equal(pulls))
		m.Expect(m.read("/etc/kubernetes/kubelet.yaml")).To(Equal("maxPods: 3\n"))
		m.Expect(m.guest.patches).To(Equal([]string{"Working old", "Done new"}))
	})
	t.Run("When Ignition installed the machine, it should apply the update and keep Ignition's own files", func(t *testing.T) {
		m, f := newNode(t)
		m.put(nodeplan.UnitDir+"hypershift-node-agent.service", "Ignition's")
		rest, err := json.Marshal(nodeplan.Plan{Version: nodeplan.Version, ConfigHash: "old", Node: m.plan.Node, Pod: m.plan.Pod, Owned: m.plan.Paths()})
		m.Expect(err).NotTo(HaveOccurred())
		m.put(planPath, string(rest))
		m.want("new")
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		m.isNew()
		m.Expect(m.read(nodeplan.UnitDir + "hypershift-node-agent.service")).To(Equal("Ignition's"))
	})
	t.Run("When an older server rendered the plan, it should report the hash of the installation", func(t *testing.T) {
		m, f := newNode(t)
		m.put(planPath, strings.Replace(m.read(planPath), `"configHash":"old",`, "", 1))
		m.put(serverDir+"headers", m.read(serverDir+"headers")+"TargetConfigVersionHash: installed\n")
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		m.Expect(m.guest.patches).To(Equal([]string{"Done installed"}))
	})
	t.Run("When the server has a newer node-agent, that program should continue the update", func(t *testing.T) {
		m, f := newNode(t)
		m.program = "a newer program"
		became := errors.New("it is another program from here on")
		f.become = func() error { return became }
		m.want("new")
		m.Expect(m.applyAnnotations(f)).To(MatchError(became))
		m.Expect(m.read(nodeplan.Program)).To(Equal("a newer program"))
		m.Expect(m.commands).To(ContainElement("node-agent.next --help"), "it is tried before")
		f.become = func() error { t.Error("again"); return nil }
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		m.isNew()
	})
}

// TestRollBack requests configurations with which the Node does not become Ready.
func TestRollBack(t *testing.T) {
	for _, tc := range []struct {
		name string
		harm func(m *machine)
		says string
	}{
		{"the kubelet cannot read its configuration", func(m *machine) { m.edit(&m.next, "/etc/kubernetes/kubelet.yaml", "broken\n") }, "the kubelet kubelet of 2 ended 5 times"},
		{"a file of the configuration has an unknown owner", func(m *machine) { m.next.Files[len(m.next.Files)-1].Owner.User = "ghost" }, `there is no "ghost"`},
		{"a file of the image conflicts with the configuration", func(m *machine) { m.put("/etc/only-new", "the image's") }, "set overwrite"},
	} {
		t.Run("When "+tc.name+", it should roll back and report the cause on the Node", func(t *testing.T) {
			m, f := newNode(t)
			tc.harm(m)
			before := without(m.state())
			m.want("new")
			m.Expect(m.applyAnnotations(f)).To(Succeed())
			if diff := cmp.Diff(before, without(m.state())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			current, state, message := m.says()
			m.Expect([]string{current, state}).To(Equal([]string{"old", "RolledBack"}))
			m.Expect(message).To(And(HavePrefix("configuration new was rolled back: "), ContainSubstring(tc.says)))
			m.Expect(m.guest.kubelet).To(Equal("kubelet of the release"))
			m.Expect(m.commands).To(ContainElement("systemctl start --no-block own.service"))

			patches := len(m.guest.patches)
			m.Expect(m.applyAnnotations(f)).To(Succeed())
			m.Expect(m.guest.patches).To(HaveLen(patches), "it is not tried again by itself")
			delete(m.guest.annotations, stateAnnotation)
			m.Expect(m.applyAnnotations(f)).To(Succeed())
			m.Expect(m.guest.patches[patches:]).To(Equal([]string{"Working old", "RolledBack old"}), "who takes the answer away wants another attempt")
			m.want("old")
			m.Expect(m.applyAnnotations(f)).To(Succeed())
			_, state, message = m.says()
			m.Expect(state+message).To(Equal("Done"), "what is over is not told for ever")
		})
	}
	t.Run("When the Node is not Ready after the rollback either, it should report both failures", func(t *testing.T) {
		m, f := newNode(t)
		m.edit(&m.next, "/etc/kubernetes/kubelet.yaml", "broken\n")
		run := m.host.Run
		m.host.Run = stopAt(run, "systemctl restart --no-block hypershift-containerd.service kubelet.service", func() {
			m.guest.mu.Lock()
			defer m.guest.mu.Unlock()
			m.guest.kubelet, m.guest.broken = "", true
		})
		m.want("new")
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		_, state, message := m.says()
		m.Expect(state).To(Equal("Failed"))
		m.Expect(message).To(And(ContainSubstring("rolled back"), ContainSubstring("with its previous configuration the kubelet")))
	})
	t.Run("When the kubelet reports no Ready condition, it should wait until the timeout and report the reason", func(t *testing.T) {
		m, f := newNode(t)
		f.ready = 50 * time.Millisecond
		m.host.Run = stopAt(m.host.Run, "systemctl restart --no-block hypershift-containerd.service kubelet.service", func() {
			m.guest.mu.Lock()
			defer m.guest.mu.Unlock()
			m.guest.kubelet = "" // The kubelet hangs.
		})
		m.want("new")
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		_, _, message := m.says()
		m.Expect(message).To(ContainSubstring("was not Ready with kubelet kubelet of 2"))
	})
}

// TestNotTaken requests configurations that are not available. The machine must stay unchanged.
func TestNotTaken(t *testing.T) {
	for _, tc := range []struct {
		name string
		harm func(m *machine)
		says string
	}{
		{"the server rejects the request", func(m *machine) { m.status = http.StatusForbidden }, "403 Forbidden"},
		{"the server has another configuration", func(m *machine) { m.next.ConfigHash = "other"; m.want("other"); m.next.ConfigHash = "new" }, "404"},
		{"the server's certificate is not trusted", func(m *machine) { m.put(nodeplan.ServerCA, string(m.registry.CA)) }, "certificate"},
		{"the machine has no server endpoint", func(m *machine) { m.Expect(os.Remove(m.host.Path(nodeplan.ServerEndpoint))).To(Succeed()) }, "replace the machine once"},
		{"the version of the plan is newer than node-agent supports", func(m *machine) { m.next.Version = 9 }, "version 9"},
		{"the downloaded node-agent is corrupt", func(m *machine) { m.program = "damaged this program" }, "checksum"},
		{"the release image cannot be pulled", func(m *machine) { m.next.Node.Name, m.next.Node.Sources = "gone", []nodeplan.Source{nowhere} }, "pulling " + nowhere.Image},
		{"the release has no kubelet", func(m *machine) {
			name := m.push("empty", map[string]string{"usr/bin/ctr": "ctr"})
			m.next.Node = nodeplan.Image{Name: name, Sources: []nodeplan.Source{{Image: name, CAs: m.plan.Node.Sources[0].CAs}}}
		}, "no program /usr/bin/kubelet"},
		{"an existing path cannot be backed up", func(m *machine) { m.put("/etc/only-new/folder", "") }, "saving /etc/only-new for a rollback"},
	} {
		t.Run("When "+tc.name+", it should report it on the Node and change nothing", func(t *testing.T) {
			m, f := newNode(t)
			m.want("new")
			tc.harm(m)
			before := inUse(m.state())
			m.Expect(m.applyAnnotations(f)).NotTo(Succeed())
			if diff := cmp.Diff(before, inUse(m.state())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			m.Expect(filepath.Glob(m.host.Path("/var/lib/hypershift/update/*"))).To(BeEmpty(), "what is of no use takes no room")
			current, state, message := m.says()
			m.Expect([]string{current, state}).To(Equal([]string{"old", "Failed"}))
			m.Expect(message).To(And(ContainSubstring("nothing was changed"), ContainSubstring(tc.says)))
			m.Expect(m.commands).NotTo(ContainElement(ContainSubstring("restart")))
		})
	}
}

// inUse removes a release that is stored for the next attempt.
func inUse(files map[string]string) map[string]string {
	const slots = "/opt/hypershift/node/"
	current := files[slots+"current"]
	for path := range files {
		if strings.HasPrefix(path, slots+"sha256-") && !strings.HasPrefix(path, slots+current+"/") {
			delete(files, path)
		}
	}
	return files
}

// cutOff is the panic value of a simulated power loss.
type cutOff struct{}

// TestCutOff simulates a power loss after each file change of an update, and starts the machine again. It does so with
// and without a rollback.
func TestCutOff(t *testing.T) {
	for _, broken := range []bool{false, true} {
		name, step := "to it", 2
		if broken {
			name, step = "back from it", 5 // Half of the changes are the same as without the rollback.
		}
		changes := 0
		for cut := 1; cut == 1 || cut <= changes; cut += step {
			m, f := newNode(t)
			if broken {
				m.edit(&m.next, "/etc/kubernetes/kubelet.yaml", "broken\n")
			}
			want := without(m.state())
			if !broken {
				want = nil
			}
			m.want("new")
			n := 0
			m.host.Changed = func(string) {
				if n++; n == cut {
					panic(cutOff{})
				}
			}
			died := m.dies(f)
			m.host.Changed = nil
			if !died {
				break
			}
			changes = cut + step
			m.put("/proc/sys/kernel/random/boot_id", "another\n")
			if err := run(t.Context(), m.host); err != nil {
				t.Fatalf("cut off on the way %s, after change %d: %v", name, cut, err)
			}
			if state, err := update.Load(m.host); err != nil || state.Underway() && m.guest.annotations[stateAnnotation] == "Done" {
				t.Errorf("cut off on the way %s, after change %d, the Node says Done: %v", name, cut, err)
			}
			m.Expect(f.settle(t.Context())).To(Succeed())
			m.Expect(m.applyAnnotations(f)).To(Succeed())
			current, state, _ := m.says()
			if broken {
				m.Expect([]string{current, state}).To(Equal([]string{"old", "RolledBack"}), "cut off %s after change %d", name, cut)
				if diff := cmp.Diff(normalBoot(want), normalBoot(without(m.state()))); diff != "" {
					t.Errorf("cut off on the way %s, after change %d: -want +got:\n%s", name, cut, diff)
				}
				continue
			}
			m.Expect([]string{current, state}).To(Equal([]string{"new", "Done"}), "cut off %s after change %d", name, cut)
			m.isNew()
		}
		if changes < 30 {
			t.Errorf("on the way %s the machine was cut off %d times only", name, changes)
		}
	}
}

func normalBoot(files map[string]string) map[string]string {
	delete(files, "/proc/sys/kernel/random/boot_id")
	return files
}

// dies reports whether the machine lost power while it handled the annotations of its Node.
func (m *machine) dies(f *follower) (died bool) {
	m.t.Helper()
	defer func() {
		if reason := recover(); reason != nil {
			if _, ok := reason.(cutOff); !ok {
				panic(reason)
			}
			died = true
		}
	}()
	m.Expect(m.applyAnnotations(f)).To(Succeed())
	return false
}

func TestTooManyStarts(t *testing.T) {
	m, f := newNode(t)
	m.want("new")
	ctx, cancel := context.WithCancel(t.Context())
	m.host.Run = stopAt(m.run, "systemctl restart --no-block hypershift-containerd.service kubelet.service", cancel)
	m.Expect(f.applyAnnotations(ctx, map[string]string{desiredAnnotation: "new"})).To(MatchError(context.Canceled))
	m.host.Run = m.run
	for _, boot := range []string{"b", "c"} {
		m.put("/proc/sys/kernel/random/boot_id", boot)
		m.mustRun()
		m.Expect(m.read("/opt/hypershift/node/current/usr/bin/kubelet")).To(Equal("kubelet of 2"), "a machine may lose its power")
	}
	m.put("/proc/sys/kernel/random/boot_id", "d")
	m.mustRun()
	m.Expect(m.read("/opt/hypershift/node/current/usr/bin/kubelet")).To(Equal("kubelet of the release"), "one that does so again and again does not stand the configuration")
	m.Expect(f.settle(t.Context())).To(Succeed())
	m.Expect(m.applyAnnotations(f)).To(Succeed())
	_, state, message := m.says()
	m.Expect(state + message).To(ContainSubstring("RolledBackconfiguration new was rolled back: the machine was started 3 times"))
}

// TestFollowRuns runs the complete service. The watch of the Node delivers a requested configuration, even after the
// API server was unreachable.
func TestFollowRuns(t *testing.T) {
	m, f := newNode(t)
	m.guest.away = true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx) }()
	state := func() string { current, state, _ := m.says(); return state + " " + current }
	m.guest.mu.Lock()
	m.guest.away = false
	m.guest.mu.Unlock()
	m.Eventually(state).WithTimeout(2 * time.Minute).Should(Equal("Done old"))
	m.want("new")
	m.Eventually(state).WithTimeout(2 * time.Minute).Should(Equal("Done new"))
	cancel()
	m.Eventually(ended).WithTimeout(2 * time.Minute).Should(Receive(MatchError(context.Canceled)))
	m.isNew()
}

func TestNewKernelArguments(t *testing.T) {
	m, f := newNode(t)
	m.next.KernelArguments = []string{"hugepages=4"}
	m.put("/var/lib/cloud/instance/boot-finished", "")
	rebooted := func(do func(ctx context.Context) error) {
		ctx, cancel := context.WithCancel(t.Context())
		m.host.Run = stopAt(m.run, "systemctl reboot", cancel)
		m.Expect(do(ctx)).To(MatchError(context.Canceled))
		m.host.Run = m.run
	}
	rebooted(func(ctx context.Context) error {
		return f.applyAnnotations(ctx, map[string]string{desiredAnnotation: "new"})
	})
	t.Run("When the machine reboots with the arguments, it should complete the new configuration", func(t *testing.T) {
		m.put("/proc/sys/kernel/random/boot_id", "second\n")
		m.put("/proc/cmdline", "quiet hugepages=4\n")
		m.mustRun()
		m.want("new")
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		m.isNew()
	})
	t.Run("When a later configuration has no arguments, it should reboot the machine without them", func(t *testing.T) {
		m.later(func(p *nodeplan.Plan) { p.ConfigHash = "third" })
		rebooted(func(ctx context.Context) error {
			return f.applyAnnotations(ctx, map[string]string{desiredAnnotation: "third"})
		})
		m.Expect(m.host.Exists("/etc/default/grub.d/90-hypershift.cfg")).To(BeFalse())
		m.put("/proc/sys/kernel/random/boot_id", "third\n")
		m.put("/proc/cmdline", "quiet\n")
		m.mustRun()
		m.want("third")
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		current, state, _ := m.says()
		m.Expect(state + " " + current).To(Equal("Done third"))
	})
}
