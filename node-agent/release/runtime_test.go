// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/node-agent/host/hosttest"
	"github.com/openshift/hypershift/node-agent/release"
	"github.com/openshift/hypershift/support/nodeplan"
)

const (
	runtimeConfig = "/etc/hypershift/containerd.toml"
	kubeletConfig = "/etc/kubernetes/kubelet.conf.d/00-hypershift-machine.conf"
	crictl        = "/usr/local/bin/crictl"
	crictlConfig  = "/etc/crictl.yaml"
)

func TestConfigure(t *testing.T) {
	t.Parallel()
	plan := &nodeplan.Plan{Pod: nodeplan.Image{Name: "registry.example/pod@sha256:1"}}
	for name, tt := range map[string]struct {
		has              []string
		runtime, kubelet string
		not              string
	}{
		"When systemd manages cgroups v2, containerd and the kubelet should use the systemd driver": {[]string{"/proc/1/comm", "/sys/fs/cgroup/cgroup.controllers"},
			"SystemdCgroup = true", "cgroupDriver: systemd", "failCgroupV1"},
		"When systemd is not the init process, containerd and the kubelet should both use cgroupfs": {[]string{"/sys/fs/cgroup/cgroup.controllers"}, "SystemdCgroup = false", "cgroupDriver: cgroupfs", "failCgroupV1"},
		"When the machine has cgroups v1, the kubelet should be configured to start":                {[]string{"/proc/1/comm"}, "SystemdCgroup = true", "failCgroupV1: false", "resolvConf"},
		"When systemd-resolved is in use, the kubelet should use the upstream name servers":         {[]string{"/run/systemd/resolve/resolv.conf"}, "SystemdCgroup", "resolvConf: /run/systemd/resolve/resolv.conf", "systemd\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m := NewWithT(t), hosttest.New(t)
			for _, path := range tt.has {
				m.Put(path, "systemd\n")
			}
			g.Expect(release.Configure(t.Context(), m.Host, plan)).To(Succeed())
			g.Expect(m.Text(runtimeConfig)).To(And(ContainSubstring(tt.runtime), ContainSubstring(`sandbox_image = "registry.example/pod@sha256:1"`)))
			g.Expect(m.Text(kubeletConfig)).To(And(HavePrefix("apiVersion: kubelet.config.k8s.io/"), ContainSubstring(tt.kubelet), Not(ContainSubstring(tt.not))))
			g.Expect(m.Exists(crictl)).To(BeFalse(), "a release without it needs none")
			before := m.Files()
			m.Changed = func(path string) { t.Error(path + " changed") }
			g.Expect(release.Configure(t.Context(), m.Host, plan)).To(Succeed())
			g.Expect(m.Files()).To(Equal(before))
		})
	}
	for _, path := range []string{runtimeConfig, kubeletConfig} {
		t.Run("When "+path+" cannot be written, it should return an error", func(t *testing.T) {
			g, m := NewWithT(t), hosttest.New(t)
			m.Put(path+"/x", "in the way")
			g.Expect(release.Configure(t.Context(), m.Host, plan)).To(MatchError(ContainSubstring(path)))
		})
	}
}

// TestForPeople checks that administrators have crictl in the PATH, and that an existing crictl stays.
func TestForPeople(t *testing.T) {
	t.Parallel()
	configured := func(t *testing.T, theirs ...string) (*GomegaWithT, *hosttest.Machine, error) {
		t.Helper()
		m := hosttest.New(t)
		m.Put(current+"/usr/bin/crictl", "crictl")
		for _, path := range theirs {
			m.Put(path, "theirs")
		}
		return NewWithT(t), m, release.Configure(t.Context(), m.Host, &nodeplan.Plan{})
	}
	t.Run("When the release has crictl, it should be configured for the container runtime of the node", func(t *testing.T) {
		g, m, err := configured(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.Files()[crictl]).To(Equal("-> " + current + "/usr/bin/crictl"))
		g.Expect(m.Text(crictlConfig)).To(ContainSubstring("runtime-endpoint: unix:///run/hypershift/containerd/containerd.sock"))
		g.Expect(m.Mode(crictlConfig).Perm()).To(BeEquivalentTo(0o644))
	})
	for _, path := range []string{crictl, crictlConfig} {
		t.Run("When the machine has "+path+", it should be kept, and crictl not be installed", func(t *testing.T) {
			g, m, err := configured(t, path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.Text(path)).To(Equal("theirs"))
			g.Expect(m.Exists(crictl) && m.Exists(crictlConfig)).To(BeFalse())
		})
	}
	t.Run("When crictl cannot be installed, it should return an error", func(t *testing.T) {
		g, _, err := configured(t, "/usr/local/bin")
		g.Expect(err).To(HaveOccurred())
	})
}

// TestUnits checks the systemctl calls, and the errors when they fail.
func TestUnits(t *testing.T) {
	t.Parallel()
	const reload, both = "systemctl daemon-reload", "hypershift-containerd.service kubelet.service"
	planless := func(do func(context.Context, *host.Host, *nodeplan.Plan) error) func(context.Context, *host.Host) error {
		return func(ctx context.Context, h *host.Host) error { return do(ctx, h, nil) }
	}
	for name, tt := range map[string]struct {
		do   func(context.Context, *host.Host) error
		ran  []string
		says string
	}{
		"started":             {planless(release.Start), []string{reload, "systemctl start --no-block " + both}, "the units of the node cannot be started: "},
		"restarted":           {planless(release.Restart), []string{reload, "systemctl restart --no-block " + both}, "the units of the node cannot be restarted: "},
		"given a new kubelet": {release.RestartKubelet, []string{"systemctl restart kubelet.service"}, "the kubelet cannot be restarted: "},
	} {
		t.Run("When the node is "+name+", it should run the commands in order and stop at a failure", func(t *testing.T) {
			t.Parallel()
			g, m := NewWithT(t), hosttest.New(t)
			g.Expect(tt.do(t.Context(), m.Host)).To(Succeed())
			g.Expect(m.Commands).To(Equal(tt.ran))
			refused := errors.New("access denied")
			for i, failing := range tt.ran {
				m.Commands = nil
				m.Program = func(command string, _ io.Reader) ([]byte, error) {
					if command == failing {
						return nil, refused
					}
					return nil, nil
				}
				err := tt.do(t.Context(), m.Host)
				g.Expect(err).To(MatchError(refused))
				g.Expect(m.Commands).To(Equal(tt.ran[:i+1]))
				if failing != reload {
					g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				}
			}
		})
	}
	t.Run("When the plan has no follow unit, it should start nothing", func(t *testing.T) {
		g, m := NewWithT(t), hosttest.New(t)
		g.Expect(release.Follow(t.Context(), m.Host, nil)).To(Succeed())
		g.Expect(m.Commands).To(BeEmpty())
		m.Put(nodeplan.UnitDir+nodeplan.FollowUnit, "[Service]\n")
		g.Expect(release.Follow(t.Context(), m.Host, nil)).To(Succeed())
		g.Expect(m.Commands).To(Equal([]string{"systemctl start --no-block " + nodeplan.FollowUnit}))
		refused := errors.New("access denied")
		m.Program = func(string, io.Reader) ([]byte, error) { return nil, refused }
		g.Expect(release.Follow(t.Context(), m.Host, nil)).To(MatchError(refused))
	})
}

func TestVersionAndEnds(t *testing.T) {
	t.Parallel()
	answering := func(t *testing.T, text string, err error) (*GomegaWithT, *hosttest.Machine) {
		t.Helper()
		m := hosttest.New(t)
		m.Program = func(string, io.Reader) ([]byte, error) { return []byte(text), err }
		return NewWithT(t), m
	}
	t.Run("When the kubelet prints its version, it should return that version", func(t *testing.T) {
		g, m := answering(t, "Kubernetes v1.36.3\n", nil)
		g.Expect(release.Version(t.Context(), m.Host)).To(Equal("v1.36.3"))
		g.Expect(m.Commands).To(Equal([]string{current + "/usr/bin/kubelet --version"}), "it is the one of the release")
	})
	for name, tt := range map[string]struct {
		text, says string
		err        error
	}{
		"prints no version":  {"flag provided but not defined", `kubelet --version says "flag provided but not defined"`, nil},
		"prints nothing":     {"", `kubelet --version says ""`, nil},
		"does not run":       {"", "exec format error", errors.New("exec format error")},
		"prints a long text": {strings.Repeat("x", 5000), `"` + strings.Repeat("x", 100) + `"`, nil},
	} {
		t.Run("When the kubelet "+name+", it should return an error", func(t *testing.T) {
			g, m := answering(t, tt.text, tt.err)
			_, err := release.Version(t.Context(), m.Host)
			g.Expect(err).To(MatchError(HaveSuffix(tt.says)))
		})
	}
	t.Run("When systemd counts the restarts of the kubelet, it should return the count", func(t *testing.T) {
		g, m := answering(t, "17\n", nil)
		g.Expect(release.Ended(t.Context(), m.Host)).To(Equal(17))
		g.Expect(m.Commands).To(Equal([]string{"systemctl show --property=NRestarts --value kubelet.service"}), "the number, and nothing else")
	})
	for name, err := range map[string]error{"": nil, "[not set]": nil, "3": errors.New("no bus")} {
		t.Run("When systemd reports \""+name+"\" instead of a count, it should return an error", func(t *testing.T) {
			g, m := answering(t, name, err)
			_, err := release.Ended(t.Context(), m.Host)
			g.Expect(err).To(HaveOccurred())
		})
	}
}
