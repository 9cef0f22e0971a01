// SPDX-License-Identifier: Apache-2.0

package ubuntunode

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/cloudconfig"
	"github.com/openshift/hypershift/ignition-server/endpoint"
	"github.com/openshift/hypershift/ignition-server/nodeconfig"
	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/test/maas-simulator/status"
	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/network/networktest"
)

// server is the backend of an ignition-server's endpoint; it knows one token.
type server struct{ entry token.Entry }

func (s server) Get(t string) (token.Entry, bool) { return s.entry, t == "the token" }
func (s server) Payload(_ context.Context, e token.Entry) ([]byte, error) {
	return e.Payload, nil
}
func (s server) Served(context.Context, token.Entry) error { return nil }
func (s server) Missed()                                   {}
func (s server) Refused()                                  {}
func (s server) Config(_, _ string) (token.Entry, bool)    { return token.Entry{}, false }

// api starts a fake kube-apiserver of the guest. It counts the requests for certificates in asked.
func (s *site) api() (url string, asked *atomic.Int32) {
	asked = &atomic.Int32{}
	server := bridge.Serve(s.t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/certificatesigningrequests") && r.Header.Get("Authorization") == "Bearer bootstrap" {
			asked.Add(1)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}), (*httptest.Server).StartTLS)
	return server.URL, asked
}

// input returns a node configuration whose images the machine can pull.
func (s *site) input(apiURL string) nodeconfig.Input {
	s.t.Helper()
	node := map[string]string{"/usr/bin/kubelet": "kube/kubelet", "/opt/cni/bin/bridge": "cni/bridge"}
	for _, program := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc"} {
		node["/usr/bin/"+program] = "os/usr/bin/" + program
	}
	return nodeconfig.Input{
		NodePool: "workers", ServiceCIDRs: []string{"172.31.0.0/16"}, ClientCA: networktest.PEM(bridge.Certificate(s.t).Certificate[0]), SSHKeys: []string{"ssh-ed25519 AAAA me"},
		BootstrapKubeconfig: fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
  clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: bootstrap}}]}`, apiURL),
		NodeImage: s.push("node", node), PodImage: s.push("pod", map[string]string{"/pause": "images/pause"}),
		Image: &configv1.ImageSpec{RegistrySources: configv1.RegistrySources{InsecureRegistries: []string{s.registry}}},
	}
}

// ignitionServer serves a configuration and node-agent.
func (s *site) ignitionServer(payload []byte) *httptest.Server {
	s.t.Helper()
	serve := server{token.Entry{Payload: payload}}
	return bridge.Serve(s.t, &endpoint.Server{Tokens: serve, Credentials: serve, Observer: serve, Programs: os.DirFS(s.nodeAgent()), Log: slog.New(slog.DiscardHandler)}, (*httptest.Server).StartTLS)
}

func TestStockUbuntuBecomesANode(t *testing.T) {
	s := newSite(t)
	apiURL, asked := s.api()
	in := s.input(apiURL)
	in.Config = "kind: MachineConfig\nmetadata: {name: pages}\nspec: {kernelArguments: [hugepages=4]}\n"
	plan, err := nodeconfig.RenderPlan(in)
	s.Expect(err).NotTo(HaveOccurred())
	ignition := s.ignitionServer(plan)
	userData, err := cloudconfig.Render(cloudconfig.Input{
		Endpoint: strings.TrimPrefix(ignition.URL, "https://"), CA: networktest.PEM(ignition.Certificate().Raw), Token: []byte("the token"), NodePool: "clusters/demo", ConfigHash: "0a1b2c3d",
	})
	s.Expect(err).NotTo(HaveOccurred())
	s.deploy("ubuntu", "noble", userData)

	s.Eventually(s.status).WithTimeout(timeout).Should(Equal(status.Deployed), s.explain)
	s.Eventually(asked.Load).WithTimeout(timeout).Should(BeNumerically(">", 0), s.explain)

	t.Run("When the kubelet requests its certificate, the machine should have rebooted with its kernel arguments", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(s.read("/etc/default/grub.d/90-hypershift.cfg")).To(ContainSubstring("hugepages=4"))
		m, err := machine.Lookup(filepath.Join(s.backend.Dir, systemID))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.Exec(t.Context(), "cat", "/proc/cmdline")).To(ContainSubstring("hugepages=4"))
		g.Expect(m.Exec(t.Context(), "/opt/hypershift/node/current/usr/bin/ctr", "--address", "/run/hypershift/containerd/containerd.sock", "-n", "k8s.io", "images", "list", "-q")).
			To(ContainSubstring(s.registry + "/pod:1"))
	})
	t.Run("When node-agent has run, its journal should show each step and no secret", func(t *testing.T) {
		g := NewWithT(t)
		read := func() string { return s.read(journal("hypershift-node-agent")) }
		g.Eventually(read).WithTimeout(timeout).Should(And(ContainSubstring("applied the node plan"), ContainSubstring("restarting the machine"), ContainSubstring("this machine runs the kubelet of")))
		g.Expect(read()).NotTo(Or(ContainSubstring("dGhlIHRva2Vu"), ContainSubstring("bootstrap\"")))
		g.Expect(s.read("/etc/passwd")).To(ContainSubstring("core:"))
	})
}

// TestIgnitionBecomesANode checks that a machine with Ignition becomes a node too: Ignition fetches node-agent as
// configured by the ignition-server, and starts it.
func TestIgnitionBecomesANode(t *testing.T) {
	s := newSite(t)
	apiURL, asked := s.api()
	rendered, err := nodeconfig.Render(s.input(apiURL))
	s.Expect(err).NotTo(HaveOccurred())
	ignition := s.ignitionServer(rendered)
	s.deploy("custom", "kubernetes-node", fmt.Appendf(nil, `{"ignition": {"version": "3.2.0",
  "security": {"tls": {"certificateAuthorities": [{"source": "data:;base64,%s"}]}},
  "config": {"merge": [{"source": "%s/ignition", "httpHeaders": [{"name": "Authorization", "value": "Bearer %s"}]}]}}}`,
		base64.StdEncoding.EncodeToString(networktest.PEM(ignition.Certificate().Raw)), ignition.URL, base64.StdEncoding.EncodeToString([]byte("the token"))))

	s.Eventually(s.status).WithTimeout(timeout).Should(Equal(status.Deployed), s.explain)
	s.Eventually(asked.Load).WithTimeout(timeout).Should(BeNumerically(">", 0), s.explain)

	t.Run("When the kubelet requests its certificate, kubelet and container runtime should be the release's", func(t *testing.T) {
		g := NewWithT(t)
		m, err := machine.Lookup(filepath.Join(s.backend.Dir, systemID))
		g.Expect(err).NotTo(HaveOccurred())
		ctr := func(args ...string) (string, error) {
			return m.Exec(t.Context(), append([]string{"/opt/hypershift/node/current/usr/bin/ctr", "--address", "/run/hypershift/containerd/containerd.sock", "-n", "k8s.io"}, args...)...)
		}
		g.Expect(ctr("images", "list", "-q")).To(ContainSubstring(s.registry + "/pod:1"))
		_, err = ctr("run", "--detach", "--net-host", s.registry+"/pod:1", "pause", "/pause")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ctr("tasks", "list")).To(MatchRegexp(`pause\s+\d+\s+RUNNING`), "runc and the shim are the release's too")
	})
	t.Run("When the machine is inspected, it should have node-agent and none of our scripts", func(t *testing.T) {
		g := NewWithT(t)
		m, err := machine.Lookup(filepath.Join(s.backend.Dir, systemID))
		g.Expect(err).NotTo(HaveOccurred())
		programs, err := os.ReadDir(m.Path("/opt/hypershift/bin"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(programs).To(HaveExactElements(HaveField("Name()", "node-agent")))
		g.Expect(m.Path("/opt/kubernetes")).NotTo(BeADirectory())
	})
	t.Run("When a program is damaged and the machine restarts, node-agent should fix it before the kubelet starts", func(t *testing.T) {
		g := NewWithT(t)
		m, err := machine.Lookup(filepath.Join(s.backend.Dir, systemID))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.Stop(t.Context())).To(Succeed())
		current, err := os.Readlink(m.Path("/opt/hypershift/node/current"))
		g.Expect(err).NotTo(HaveOccurred())
		kubelet := m.Path("/opt/hypershift/node/" + current + "/usr/bin/kubelet")
		g.Expect(os.WriteFile(kubelet, []byte("cut off"), 0o755)).To(Succeed())
		before := asked.Load()
		ignition.Close()
		_, err = machine.Start(t.Context(), m.Config())
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(asked.Load).WithTimeout(timeout).Should(BeNumerically(">", before), s.explain)
		// A request of the kubelet that was stopped may be counted late.
		g.Eventually(func() string { return s.read(journal("hypershift-node-agent")) }).WithTimeout(timeout).Should(ContainSubstring("usr/bin/kubelet is damaged"), s.explain)
	})
}
