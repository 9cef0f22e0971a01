// SPDX-License-Identifier: Apache-2.0

package availabilityprober

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/hypershift/support/testenv"
)

func TestRun(t *testing.T) {
	t.Run("When the target becomes ready, it should succeed", func(t *testing.T) {
		g := NewWithT(t)
		var asked atomic.Int32
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) < 2 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		defer server.Close()
		g.Expect(options{target: server.URL}.run(t.Context())).To(Succeed())
		g.Expect(asked.Load()).To(BeNumerically(">=", 2), "an answer that comes too late is asked for again")
	})
	t.Run("When the target never becomes ready, it should wait until it is stopped", func(t *testing.T) {
		g := NewWithT(t)
		server := httptest.NewServer(http.NotFoundHandler())
		defer server.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		g.Expect(options{target: server.URL}.run(ctx)).NotTo(Succeed())
	})
	t.Run("When the target is a TCP port, it should wait until the port accepts connections", func(t *testing.T) {
		g := NewWithT(t)
		reserved, err := net.Listen("tcp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		o := options{target: "tcp://" + reserved.Addr().String()}
		g.Expect(o.run(t.Context())).To(Succeed())
		g.Expect(reserved.Close()).To(Succeed())
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		g.Expect(o.run(ctx)).NotTo(Succeed())
	})
	wrong := map[string]struct {
		o    options
		want string
	}{
		"no target": {options{}, "--target is missing"},
		"an API in the wrong format": {options{target: "https://x", requiredAPIs: []string{"config.openshift.io/v1"},
			kubeconfig: kubeconfigFile(t, &rest.Config{Host: "https://x"})}, "write it as group,version,kind"},
		"a missing kubeconfig": {options{target: "https://x", infrastructure: true, kubeconfig: "missing"},
			"--kubeconfig: reading kubeconfig missing"},
	}
	for name, tc := range wrong {
		t.Run("When it is started with "+name+" it should say what is wrong", func(t *testing.T) {
			NewWithT(t).Expect(tc.o.run(t.Context())).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

// kubeconfigFile writes a kubeconfig for config to a file.
func kubeconfigFile(t *testing.T, config *rest.Config) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["x"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos["x"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	c.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestChecks(t *testing.T) {
	config := testenv.Start(t)
	file := kubeconfigFile(t, config)
	// A check times out after ten seconds, also on a busy machine, and is repeated.
	outcome := func(g Gomega, o options) AsyncAssertion {
		o.target, o.kubeconfig = "https://unused", file
		checks, err := o.checks()
		g.Expect(err).NotTo(HaveOccurred())
		return g.Eventually(func() error { return checks[len(checks)-1].run(t.Context()) })
	}
	t.Run("When a required API is not served, it should wait; when it is served, it should succeed", func(t *testing.T) {
		g := NewWithT(t)
		outcome(g, options{requiredAPIs: []string{"apps,v1,Deployment"}}).Should(Succeed())
		outcome(g, options{requiredAPIs: []string{"apps,v1,Nothing"}}).Should(MatchError(ContainSubstring("is not served")))
		outcome(g, options{requiredAPIs: []string{"config.openshift.io,v1,DNS"}}).ShouldNot(Succeed())
	})
	t.Run("When a ClusterRoleBinding does not exist, it should wait; when it exists, it should succeed", func(t *testing.T) {
		g := NewWithT(t)
		outcome(g, options{clusterRoleBinding: "cluster-admin"}).Should(Succeed())
		outcome(g, options{clusterRoleBinding: "nobody"}).Should(MatchError("it does not exist"))
		g.Expect(exists(t.Context(), config, &rbacv1.ClusterRoleBinding{}, "cluster-admin")).To(Succeed())
	})
	t.Run("When there is no Infrastructure, it should wait", func(t *testing.T) {
		g := NewWithT(t)
		outcome(g, options{infrastructure: true}).ShouldNot(Succeed())
	})
}
