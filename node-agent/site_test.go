// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/nodeplan"
)

// TestNeighbours covers files that a site may have installed on the machine before.
func TestNeighbours(t *testing.T) {
	t.Run("When the distribution's container runtime is installed, it should not be changed", func(t *testing.T) {
		m := newMachine(t)
		theirs := map[string]string{
			"/usr/bin/containerd": "theirs", "/usr/bin/runc": "theirs", "/etc/containerd/config.toml": "version = 2\n", "/var/lib/containerd/meta.db": "images",
			"/usr/lib/systemd/system/containerd.service": "[Service]\n", "/run/containerd/containerd.sock": "", "/usr/local/bin/crictl": "theirs",
		}
		for path, text := range theirs {
			m.put(path, text)
		}
		m.mustRun()
		for path, text := range theirs {
			m.Expect(m.read(path)).To(Equal(text), path)
		}
		m.Expect(m.commands).NotTo(ContainElement(MatchRegexp(`(^| )(containerd|docker)(\.service)?( |$)`)))
		m.Expect(m.read("/etc/hypershift/containerd.toml")).NotTo(MatchRegexp(`"/(run|var/lib)/containerd`))
		m.Expect(m.host.Exists("/etc/crictl.yaml")).To(BeFalse(), "their crictl has their configuration")
	})
	t.Run("When the machine has AppArmor, it should stay enabled", func(t *testing.T) {
		m := newMachine(t)
		m.put("/sys/module/apparmor/parameters/enabled", "Y\n")
		m.mustRun()
		m.Expect(m.read("/etc/hypershift/containerd.toml")).NotTo(ContainSubstring("apparmor"), "containerd confines containers unless it is told not to")
		m.Expect(m.commands).NotTo(ContainElement(ContainSubstring("apparmor")))
		m.Expect(m.host.Exists("/etc/default/grub.d/90-hypershift.cfg")).To(BeFalse(), "the kernel's command line is the image's")
	})
	t.Run("When systemd runs on cgroups v1, containerd should use systemd and the kubelet should start", func(t *testing.T) {
		m := newMachine(t)
		m.Expect(os.Remove(m.host.Path("/sys/fs/cgroup/cgroup.controllers"))).To(Succeed())
		m.mustRun()
		m.Expect(m.read("/etc/hypershift/containerd.toml")).To(ContainSubstring("SystemdCgroup = true"))
		m.Expect(m.read("/etc/kubernetes/kubelet.conf.d/00-hypershift-machine.conf")).To(And(ContainSubstring("cgroupDriver: systemd"), ContainSubstring("failCgroupV1: false")))
	})
}

// TestProxy covers a registry behind a proxy, whose name does not resolve on this machine.
func TestProxy(t *testing.T) {
	m := newMachine(t)
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.Host)
		mu.Unlock()
		tunnel(w, m.registry.Host)
	}))
	t.Cleanup(proxy.Close)
	_, port, err := net.SplitHostPort(m.registry.Host)
	m.Expect(err).NotTo(HaveOccurred())
	outside := "registry.invalid:" + port
	// This address is the local machine, but not the loopback address, for which a proxy is never used.
	const direct = "0.0.0.0"
	m.plan.Proxy = nodeplan.Proxy{HTTPS: proxy.URL, NoProxy: direct}
	m.plan.Node.Sources = []nodeplan.Source{{Image: strings.Replace(m.plan.Node.Name, m.registry.Host, outside, 1), Insecure: true}}
	m.plan.Pod.Sources = []nodeplan.Source{{Image: strings.Replace(m.plan.Pod.Name, "127.0.0.1", direct, 1), Insecure: true}}
	m.mustRun()
	t.Run("When the cluster has a proxy, it should pull the release through the proxy", func(*testing.T) {
		mu.Lock()
		defer mu.Unlock()
		m.Expect(asked).NotTo(BeEmpty())
		m.Expect(asked).To(HaveEach("CONNECT " + outside))
		m.Expect(m.read("/opt/hypershift/node/current/usr/bin/kubelet")).To(Equal("kubelet of the release"))
	})
	t.Run("When a registry is in NO_PROXY, it should not use the proxy", func(t *testing.T) {
		m.Expect(sandbox(t.Context(), m.host)).To(Succeed())
		m.Expect(m.images).To(Equal([]string{m.plan.Pod.Name}))
		mu.Lock()
		defer mu.Unlock()
		m.Expect(asked).To(HaveEach("CONNECT " + outside))
	})
	t.Run("When the proxy rejects the connection, it should return an error without the proxy's password", func(t *testing.T) {
		m := newMachine(t)
		shut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
		t.Cleanup(shut.Close)
		m.plan.Proxy = nodeplan.Proxy{HTTPS: strings.Replace(shut.URL, "http://", "http://me:hunter2@", 1)}
		m.plan.Node.Sources = []nodeplan.Source{{Image: outside + "/node:1"}}
		m.Expect(run(t.Context(), m.host)).To(MatchError(And(ContainSubstring("pulling "+outside), ContainSubstring("Forbidden"), Not(ContainSubstring("hunter2")))))
	})
}

// tunnel connects a client of the proxy with a server.
func tunnel(w http.ResponseWriter, server string) {
	w.WriteHeader(http.StatusOK)
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(upstream, buffered)
		upstream.Close()
	}()
	_, _ = io.Copy(client, upstream)
}
