// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/nodeplan"
)

// nowhere is a mirror that cannot be reached.
var nowhere = nodeplan.Source{Image: "127.0.0.1:1/not/there:1"}

func TestRun(t *testing.T) {
	m := newMachine(t)
	t.Run("When the first stage has finished, the machine should become a node", func(t *testing.T) {
		m.plan.Node.Sources = append([]nodeplan.Source{nowhere}, m.plan.Node.Sources...)
		m.mustRun()
		m.Expect(m.read("/opt/hypershift/node/current/usr/bin/kubelet")).To(Equal("kubelet of the release"))
		m.Expect(m.read("/opt/cni/bin/bridge")).To(Equal("bridge"))
		m.Expect(m.read("/etc/systemd/system/hypershift-containerd.service.d/1.conf")).To(Equal("x"))
		m.Expect(m.read("/etc/motd")).To(Equal("Welcome\na node\n"))
		m.Expect(m.read("/etc/hard")).To(Equal("Welcome\na node\n"))
		m.Expect(m.read("/home/core/.ssh/authorized_keys")).To(Equal("ssh-ed25519 AAAA me\n"))
		m.Expect(m.read("/etc/fstab")).To(Equal("/dev/sda2 / ext4 defaults 0 1\n# Turned off for Kubernetes: /swap.img none swap sw 0 0\n"))
		m.Expect(m.read("/etc/hypershift/containerd.toml")).To(And(
			ContainSubstring("sandbox_image = \""+m.plan.Pod.Name+"\""), ContainSubstring("SystemdCgroup = true"), ContainSubstring("/run/hypershift/containerd/containerd.sock")))
		m.Expect(m.read("/etc/kubernetes/kubelet.conf.d/00-hypershift-machine.conf")).To(And(
			ContainSubstring("cgroupDriver: systemd"), ContainSubstring("resolvConf: /run/systemd/resolve/resolv.conf"), Not(ContainSubstring("failCgroupV1"))))
		m.Expect(os.Readlink(m.host.Path("/usr/local/bin/crictl"))).To(Equal("/opt/hypershift/node/current/usr/bin/crictl"))
		info, err := os.Stat(m.host.Path("/etc/kubernetes/bootstrap-kubeconfig"))
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
		m.Expect(m.commands).To(Equal([]string{
			"useradd --create-home --shell /bin/bash core",
			"systemctl daemon-reload", "systemctl enable own.service", "systemctl start --no-block own.service",
			"systemctl mask --now apt-daily.timer", "systemctl disable --now snapd.service",
			"swapoff /swap.img", "modprobe overlay", "modprobe br_netfilter",
			"sysctl -e -q -p " + m.host.Path("/etc/sysctl.d/90-hypershift-node.conf"),
			"systemctl daemon-reload", "systemctl start --no-block hypershift-containerd.service kubelet.service",
		}))
		m.Expect(m.log.String()).NotTo(Or(ContainSubstring("secret"), ContainSubstring("c2VjcmV0"), ContainSubstring("kind: Config")))
	})
	t.Run("When the machine starts again, it should need no server and change no files", func(t *testing.T) {
		before, pulls, requests := m.state(), m.registry.Requests(), m.requests
		m.put("/proc/swaps", "Filename Type Size Used Priority\n")
		before["/proc/swaps"] = m.state()["/proc/swaps"]
		m.commands = nil
		m.mustRun()
		m.Expect(m.state()).To(Equal(before))
		m.Expect(m.registry.Requests()).To(Equal(pulls))
		m.Expect(m.requests).To(Equal(requests))
		m.Expect(m.commands).NotTo(ContainElement(HavePrefix("useradd")))
		m.Expect(m.commands).To(ContainElement("systemctl start --no-block hypershift-containerd.service kubelet.service"))
	})
	t.Run("When a machine restarts after an hour without having joined, it should fetch new credentials", func(t *testing.T) {
		m := newMachine(t)
		m.mustRun()
		long := time.Now().Add(-time.Hour)
		m.Expect(os.Chtimes(m.host.Path(planPath), long, long)).To(Succeed())
		m.plan.Files[1].Content = []byte("another token\n")
		m.mustRun()
		m.Expect(m.read("/etc/kubernetes/bootstrap-kubeconfig")).To(Equal("another token\n"))
		m.Expect(m.read("/etc/motd")).To(Equal("Welcome\na node\n"), "nothing is appended twice")
		m.put("/var/lib/kubelet/kubeconfig", "joined")
		m.Expect(os.Chtimes(m.host.Path(planPath), long, long)).To(Succeed())
		m.status = http.StatusNetworkAuthenticationRequired
		m.mustRun()
	})
	t.Run("When an administrator has changed a file, it should keep the change", func(t *testing.T) {
		m.put("/etc/motd", "mine\n")
		m.mustRun()
		m.Expect(m.read("/etc/motd")).To(Equal("mine\n"))
	})
	t.Run("When there is no systemd and cgroups are v1, containerd and the kubelet should both use cgroupfs", func(t *testing.T) {
		m.put("/proc/1/comm", "init\n")
		m.Expect(os.Remove(m.host.Path("/sys/fs/cgroup/cgroup.controllers"))).To(Succeed())
		m.mustRun()
		m.Expect(m.read("/etc/hypershift/containerd.toml")).To(ContainSubstring("SystemdCgroup = false"))
		m.Expect(m.read("/etc/kubernetes/kubelet.conf.d/00-hypershift-machine.conf")).To(And(ContainSubstring("cgroupDriver: cgroupfs"), ContainSubstring("failCgroupV1: false")))
	})
}

// TestIgnition starts a machine that Ignition has configured. Its files exist, and the plan contains only the remaining
// steps.
func TestIgnition(t *testing.T) {
	ignited := func(t *testing.T) *machine {
		m := newMachine(t)
		for _, name := range []string{"endpoint", "headers", "ca.crt"} {
			m.Expect(os.Remove(m.host.Path(serverDir + name))).To(Succeed())
		}
		m.Expect(os.Remove(m.host.Path(serverDir))).To(Succeed())
		for _, f := range m.plan.Files {
			m.put(f.Path, string(f.Content))
		}
		rest, err := json.Marshal(nodeplan.Plan{Version: nodeplan.Version, Node: m.plan.Node, Pod: m.plan.Pod})
		m.Expect(err).NotTo(HaveOccurred())
		m.put(planPath, string(rest))
		return m
	}
	t.Run("When Ignition has finished, the machine should become a node without the ignition-server", func(t *testing.T) {
		m := ignited(t)
		m.mustRun()
		m.Expect(m.requests).To(BeZero())
		m.Expect(m.read("/opt/hypershift/node/current/usr/bin/kubelet")).To(Equal("kubelet of the release"))
		m.Expect(m.read("/opt/cni/bin/bridge")).To(Equal("bridge"))
		m.Expect(m.read("/etc/kubernetes/bootstrap-kubeconfig")).To(Equal("kind: Config\n"), "what Ignition wrote stays")
		m.Expect(m.commands).NotTo(ContainElement(HavePrefix("useradd")))
		m.Expect(m.commands).To(ContainElement("systemctl start --no-block hypershift-containerd.service kubelet.service"))
	})
	t.Run("When a machine restarts after hours with a corrupt disk, it should repair it without the ignition-server", func(t *testing.T) {
		m := ignited(t)
		m.mustRun()
		long := time.Now().Add(-5 * time.Hour)
		m.Expect(os.Chtimes(m.host.Path(planPath), long, long)).To(Succeed())
		m.put("/opt/hypershift/node/current/usr/bin/kubelet", "\x00")
		m.commands = nil
		m.mustRun()
		m.Expect(m.read("/opt/hypershift/node/current/usr/bin/kubelet")).To(Equal("kubelet of the release"))
		m.Expect(m.commands).To(ContainElement("systemctl start --no-block hypershift-containerd.service kubelet.service"))
		m.Expect(m.requests).To(BeZero())
	})
	t.Run("When the node image has only a kubelet, it should return an error that names the build command", func(t *testing.T) {
		m := ignited(t)
		old := m.push("old", map[string]string{"usr/bin/kubelet": "kubelet"})
		m.put(planPath, strings.ReplaceAll(m.read(planPath), m.plan.Node.Name, old))
		m.Expect(run(t.Context(), m.host)).To(MatchError(ContainSubstring("make the payload with `hypershift release build --kubernetes`")))
	})
}

// normal returns the state of a machine without the values that differ between machines of this test.
func (m *machine) normal() map[string]string {
	m.t.Helper()
	all := m.state()
	endpoint := strings.TrimSpace(m.read(serverDir + "endpoint"))
	for path, text := range all {
		all[path] = strings.NewReplacer(m.registry.Host, "registry", endpoint, "server", m.host.Root, "").Replace(text)
		if strings.HasPrefix(path, serverDir) || strings.HasSuffix(path, "ca.crt") || path == planPath || path == "/var/lib/hypershift/applied" {
			all[path] = "of this machine"
		}
	}
	return all
}

// TestLostPower simulates a power loss at each command, then starts the machine again.
func TestLostPower(t *testing.T) {
	whole := newMachine(t)
	whole.mustRun()
	want := whole.normal()
	for cut := 1; cut <= len(whole.commands); cut++ {
		t.Run("When power is lost at \""+whole.commands[cut-1]+"\", the next start should reach the same state", func(t *testing.T) {
			m := newMachine(t)
			m.failAt = cut
			_ = run(t.Context(), m.host)
			m.failAt = 0
			m.mustRun()
			got := m.normal()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestHeal starts a machine with disk contents that a crash could have left.
func TestHeal(t *testing.T) {
	for _, tc := range []struct {
		name string
		harm func(m *machine)
	}{
		{"half of an unpack", func(m *machine) { m.put("/opt/hypershift/node/.partial/usr/bin/kubelet", "kub") }},
		{"a program that contains only zeros", func(m *machine) { m.mustRun(); m.put("/opt/hypershift/node/current/usr/bin/runc", "\x00\x00") }},
		{"a program that is missing", func(m *machine) {
			m.mustRun()
			m.Expect(os.Remove(m.host.Path("/opt/hypershift/node/current/usr/bin/containerd"))).To(Succeed())
		}},
		{"an installation that is not current yet", func(m *machine) {
			m.mustRun()
			m.Expect(os.Remove(m.host.Path("/opt/hypershift/node/current"))).To(Succeed())
		}},
		{"a truncated list of files", func(m *machine) { m.mustRun(); m.put("/opt/hypershift/node/current/installed.json", "{") }},
		{"another release", func(m *machine) {
			m.mustRun()
			m.put("/opt/hypershift/node/sha256-0/usr/bin/kubelet", "old")
			m.put("/opt/hypershift/node/current/usr/bin/kubelet", "old")
			m.put("/opt/hypershift/node/current/installed.json", `{"image":"registry.example/node:old"}`)
		}},
		{"a truncated CNI plugin", func(m *machine) { m.mustRun(); m.put("/opt/cni/bin/bridge", "br") }},
	} {
		t.Run("When there is "+tc.name+", the next start should repair it", func(t *testing.T) {
			m := newMachine(t)
			tc.harm(m)
			m.mustRun()
			for file, text := range nodeFiles() {
				m.Expect(m.read("/opt/hypershift/node/current/" + file)).To(Equal(text))
			}
			m.Expect(m.read("/opt/cni/bin/bridge")).To(Equal("bridge"))
			folders, err := filepath.Glob(m.host.Path("/opt/hypershift/node/*"))
			m.Expect(err).NotTo(HaveOccurred())
			m.Expect(folders).To(HaveLen(2), "one installation and the link to it")
			m.Expect(m.host.Exists("/opt/hypershift/node/.partial")).To(BeFalse())
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name    string
		harm    func(m *machine)
		refusal string
	}{
		{"the ignition-server has no configuration yet", func(m *machine) { m.status = http.StatusNetworkAuthenticationRequired }, "there is no node configuration for this token"},
		{"the server's certificate is not trusted", func(m *machine) { m.put(serverDir+"ca.crt", string(m.registry.CA)) }, "certificate"},
		{"the plan is an Ignition config", func(m *machine) { m.plan = nodeplan.Plan{} }, "are not a node plan"},
		{"the version of the plan is too new", func(m *machine) { m.plan.Version = 9 }, "version 9"},
		{"the node image has no container runtime", func(m *machine) {
			name := m.push("old", map[string]string{"usr/bin/kubelet": "kubelet"})
			m.plan.Node = nodeplan.Image{Name: name, Sources: []nodeplan.Source{{Image: name, CAs: m.plan.Pod.Sources[0].CAs}}}
		}, "no program /usr/bin/containerd"},
		{"no registry has the image", func(m *machine) { m.plan.Node.Sources = []nodeplan.Source{nowhere} }, "pulling " + nowhere.Image},
		{"the registry's certificate is not trusted", func(m *machine) { m.plan.Node.Sources[0].CAs = nil }, "certificate"},
		{"no source is permitted", func(m *machine) { m.plan.Node.Sources = nil }, "no source is permitted"},
		{"the image has a conflicting file without overwrite", func(m *machine) {
			m.put("/etc/kept", "theirs")
			m.plan.Files = append(m.plan.Files, nodeplan.File{Path: "/etc/kept", Mode: 0o644, Content: []byte("ours"), Keep: true})
		}, "set overwrite"},
		{"a file has an unknown owner", func(m *machine) { m.plan.Files[1].Owner.User = "ghost" }, `there is no "ghost" in /etc/passwd`},
	} {
		t.Run("When "+tc.name+", it should return an error and start no kubelet", func(t *testing.T) {
			m := newMachine(t)
			tc.harm(m)
			err := run(t.Context(), m.host)
			m.Expect(err).To(MatchError(ContainSubstring(tc.refusal)))
			m.Expect(err.Error()).NotTo(ContainSubstring("c2VjcmV0"))
			m.Expect(m.commands).NotTo(ContainElement(ContainSubstring("kubelet.service")))
		})
	}
	t.Run("When a registry is marked insecure, it should be used", func(t *testing.T) {
		m := newMachine(t)
		m.plan.Node.Sources[0].CAs, m.plan.Node.Sources[0].Insecure = nil, true
		m.mustRun()
	})
}

func TestUntil(t *testing.T) {
	t.Run("When the server is not ready at first, it should retry until it responds", func(t *testing.T) {
		m := newMachine(t)
		m.status = http.StatusServiceUnavailable
		m.Expect(until(t.Context(), m.host, time.Millisecond, func(ctx context.Context, h *host.Host) error {
			err := run(ctx, h)
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.requests == 3 {
				m.status = http.StatusOK
			}
			return err
		})).To(Succeed())
		m.Expect(m.requests).To(Equal(4))
		m.Expect(strings.Count(m.log.String(), "not done yet, trying again")).To(Equal(3))
	})
	t.Run("When the machine shuts down, it should stop retrying", func(t *testing.T) {
		m := newMachine(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		m.Expect(until(ctx, m.host, time.Hour, run)).To(MatchError(context.Canceled))
	})
}

func TestKernelArguments(t *testing.T) {
	m := newMachine(t)
	m.plan.KernelArguments = []string{"quiet", "hugepages=8"}
	rebooted := func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		m.host.Run = stopAt(m.run, "systemctl reboot", cancel)
		return run(ctx, m.host)
	}
	t.Run("When arguments are missing, the machine should reboot with them before it becomes a node", func(t *testing.T) {
		m.put("/var/lib/cloud/instance/boot-finished", "")
		m.Expect(rebooted(t.Context())).To(MatchError(context.Canceled))
		m.Expect(m.commands[len(m.commands)-2:]).To(Equal([]string{"update-grub", "systemctl reboot"}))
		m.Expect(m.read("/etc/default/grub.d/90-hypershift.cfg")).To(ContainSubstring(`GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX quiet hugepages=8"`))
		m.Expect(m.commands).NotTo(ContainElement(ContainSubstring("kubelet.service")))
	})
	t.Run("When power was lost before the reboot, it should request the reboot again", func(t *testing.T) {
		m.Expect(rebooted(t.Context())).To(MatchError(context.Canceled))
	})
	t.Run("When the kernel lacks the arguments after the reboot, it should return an error", func(t *testing.T) {
		m.put("/proc/sys/kernel/random/boot_id", "second\n")
		m.Expect(run(t.Context(), m.host)).To(MatchError(ContainSubstring("its kernel still lacks hugepages=8")))
	})
	t.Run("When the kernel has the arguments, the machine should become a node", func(t *testing.T) {
		m.put("/proc/cmdline", "quiet hugepages=8\n")
		m.mustRun()
		m.Expect(m.commands).To(ContainElement(ContainSubstring("kubelet.service")))
	})
	t.Run("When cloud-init has not finished, it should not reboot the machine", func(t *testing.T) {
		m := newMachine(t)
		m.plan.KernelArguments = []string{"nosmt"}
		ctx, cancel := context.WithCancel(t.Context())
		m.host.Run = stopAt(m.run, "update-grub", cancel)
		m.Expect(run(ctx, m.host)).To(MatchError(context.Canceled))
		m.Expect(m.commands).NotTo(ContainElement("systemctl reboot"))
	})
}

// stopAt calls stop after a command has run.
func stopAt(run host.Run, command string, stop func()) host.Run {
	return func(ctx context.Context, stdin io.Reader, program string, args ...string) ([]byte, error) {
		out, err := run(ctx, stdin, program, args...)
		if strings.Join(append([]string{program}, args...), " ") == command {
			stop()
		}
		return out, err
	}
}

func TestSandbox(t *testing.T) {
	m := newMachine(t)
	m.mustRun()
	m.commands = nil
	t.Run("When the container runtime lacks the pod image, it should import the image under its name", func(t *testing.T) {
		m.Expect(sandbox(t.Context(), m.host)).To(Succeed())
		m.Expect(m.images).To(Equal([]string{m.plan.Pod.Name}))
		m.Expect(m.commands[len(m.commands)-1]).To(HaveSuffix("images label " + m.plan.Pod.Name + " io.cri-containerd.pinned=pinned"))
	})
	t.Run("When the container runtime has the pod image, it should not pull it", func(t *testing.T) {
		before := m.registry.Requests()
		m.Expect(sandbox(t.Context(), m.host)).To(Succeed())
		m.Expect(m.registry.Requests()).To(Equal(before))
		m.Expect(m.images).To(HaveLen(1))
	})
}

func TestNodeName(t *testing.T) {
	t.Run("When the hostname has capitals, the Node name should be in lower case", func(t *testing.T) {
		m := newMachine(t)
		m.Expect(nodeName(m.host)).To(Equal("worker-1"))
	})
}

// TestHostileImage unpacks images that try to write outside of their directory.
func TestHostileImage(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"has a name with ..":    {"../../../etc/evil": "x"},
		"writes through a link": {"out": "-> /etc", "out/evil": "x"},
	} {
		t.Run("When an image "+name+", it should write nothing outside its folder", func(t *testing.T) {
			m := newMachine(t)
			all := nodeFiles()
			for path, text := range files {
				all[path] = text
			}
			image := m.push("hostile", all)
			m.plan.Node = nodeplan.Image{Name: image, Sources: []nodeplan.Source{{Image: image, CAs: m.plan.Pod.Sources[0].CAs}}}
			_ = run(t.Context(), m.host)
			m.Expect(m.host.Exists("/etc/evil")).To(BeFalse())
			m.Expect(filepath.Join(filepath.Dir(m.host.Root), "evil")).NotTo(BeAnExistingFile())
		})
	}
	t.Run("When programs are absolute symlinks, they should resolve within the image", func(t *testing.T) {
		m := newMachine(t)
		files := nodeFiles()
		files["usr/bin/kubelet"], files["usr/local/bin/kubelet"] = "-> /usr/local/bin/kubelet", "the real one"
		image := m.push("links", files)
		m.plan.Node = nodeplan.Image{Name: image, Sources: []nodeplan.Source{{Image: image, CAs: m.plan.Pod.Sources[0].CAs}}}
		m.mustRun()
		m.Expect(m.read("/opt/hypershift/node/current/usr/bin/kubelet")).To(Equal("the real one"))
	})
}
