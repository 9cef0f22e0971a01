// SPDX-License-Identifier: Apache-2.0

package ubuntunode

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
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
)

// server is what an ignition-server's endpoint asks: it knows one token.
type server struct{ entry token.Entry }

func (s server) Get(t string) (token.Entry, bool) { return s.entry, t == "the token" }
func (s server) Payload(_ context.Context, e token.Entry) ([]byte, error) {
	return e.Payload, nil
}
func (s server) Served(context.Context, token.Entry) error { return nil }
func (s server) Missed()                                   {}

// api stands for the guest's kube-apiserver: it counts the requests for certificates.
func (s *site) api() (url string, asked *atomic.Int32) {
	asked = &atomic.Int32{}
	server := s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/certificatesigningrequests") && r.Header.Get("Authorization") == "Bearer bootstrap" {
			asked.Add(1)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}), (*httptest.Server).StartTLS)
	return server.URL, asked
}

func clientCA(t *testing.T) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate(t).Certificate[0]})
}

func (s *site) plan(apiURL string) []byte {
	s.t.Helper()
	node := map[string]string{"/usr/bin/kubelet": "kube/kubelet", "/opt/cni/bin/bridge": "cni/bridge"}
	for _, program := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc"} {
		node["/usr/bin/"+program] = "os/usr/bin/" + program
	}
	plan, err := nodeconfig.RenderPlan(nodeconfig.Input{
		NodePool: "workers", ServiceCIDRs: []string{"172.31.0.0/16"}, ClientCA: clientCA(s.t), SSHKeys: []string{"ssh-ed25519 AAAA me"},
		BootstrapKubeconfig: fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
  clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: bootstrap}}]}`, apiURL),
		NodeImage: s.push("node", node), PodImage: s.push("pod", map[string]string{"/pause": "images/pause"}),
		Image:  &configv1.ImageSpec{RegistrySources: configv1.RegistrySources{InsecureRegistries: []string{s.registry}}},
		Config: "kind: MachineConfig\nmetadata: {name: pages}\nspec: {kernelArguments: [hugepages=4]}\n",
	})
	s.Expect(err).NotTo(HaveOccurred())
	return plan
}

func TestStockUbuntuBecomesANode(t *testing.T) {
	s := newSite(t)
	apiURL, asked := s.api()
	serve := server{token.Entry{Payload: s.plan(apiURL)}}
	ignition := s.serve(endpoint.New(serve, serve, serve, os.DirFS(s.nodeAgent()), slog.New(slog.NewTextHandler(io.Discard, nil))), (*httptest.Server).StartTLS)
	userData, err := cloudconfig.Render(cloudconfig.Input{
		Endpoint: strings.TrimPrefix(ignition.URL, "https://"), CA: pemOf(ignition.Certificate()), Token: []byte("the token"), NodePool: "clusters/demo", ConfigHash: "0a1b2c3d",
	})
	s.Expect(err).NotTo(HaveOccurred())
	s.deploy(userData)

	s.Eventually(s.status).WithTimeout(timeout).Should(Equal(status.Deployed), s.explain)
	s.Eventually(asked.Load).WithTimeout(timeout).Should(BeNumerically(">", 0), s.explain)

	t.Run("When the kubelet asks for its certificate, the machine should have been started anew with its kernel arguments", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(s.read("/etc/default/grub.d/90-hypershift.cfg")).To(ContainSubstring("hugepages=4"))
		m, err := machine.Lookup(filepath.Join(s.backend.Dir, systemID))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.Exec(t.Context(), "cat", "/proc/cmdline")).To(ContainSubstring("hugepages=4"))
		g.Expect(m.Exec(t.Context(), "/opt/hypershift/node/current/usr/bin/ctr", "--address", "/run/hypershift/containerd/containerd.sock", "-n", "k8s.io", "images", "list", "-q")).
			To(ContainSubstring(s.registry + "/pod:1"))
	})
	t.Run("When its journal is read, it should say each step and no secret", func(t *testing.T) {
		g := NewWithT(t)
		journal := s.read(journal("hypershift-node-agent"))
		g.Expect(journal).To(And(ContainSubstring("applied the node plan"), ContainSubstring("restarting the machine"), ContainSubstring("this machine runs the kubelet of")))
		g.Expect(journal).NotTo(Or(ContainSubstring("dGhlIHRva2Vu"), ContainSubstring("bootstrap\"")))
		g.Expect(s.read("/etc/passwd")).To(ContainSubstring("core:"))
	})
}
