// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/apiproxy"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// published returns a scope of an OpenShift pool whose cluster's kubeconfig contains the given text.
func published(text string) (*Reconciler, *reconciliation) {
	s := pass()
	s.Release = fixture.Payloads()[fixture.OCPImage]
	s.HC.Status.KubeConfig = &corev1.LocalObjectReference{Name: "admin"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "admin"}, Data: map[string][]byte{"kubeconfig": []byte(text)}}
	return &Reconciler{Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(secret).Build()}, s
}

func kubeconfigOf(server string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`, server)
}

func TestPublishedAPI(t *testing.T) {
	for name, test := range map[string]struct {
		kubeconfig, host string
		port             int32
		fails            string
	}{
		"When the server has a port, it should return that port":                   {kubeconfigOf("https://api.example:31443"), "api.example", 31443, ""},
		"When the server has no port, it should return the HTTPS port":             {kubeconfigOf("https://api.example"), "api.example", 443, ""},
		"When the server is an IPv6 address, it should return it without brackets": {kubeconfigOf("https://[fd00::7]:6443"), "fd00::7", 6443, ""},
		"When the Secret has no kubeconfig, it should return an error that names the Secret": {"", "", 0,
			"Secret clusters/admin: it holds no kubeconfig"},
		"When the kubeconfig is invalid, it should return an error that names the Secret": {"{{", "", 0,
			"Secret clusters/admin: it holds no kubeconfig"},
		"When the server has no host, it should return an error that names the Secret": {kubeconfigOf("https://:6443"), "", 0,
			"Secret clusters/admin: clusters[].cluster.server must be a URL"},
		"When the server is not a URL, it should return an error that names the Secret": {kubeconfigOf("https://api.example:x"), "", 0,
			"Secret clusters/admin: clusters[].cluster.server must be a URL"},
		"When the port is too large, it should return an error that names the port": {kubeconfigOf("https://api.example:2147483648"), "", 0,
			`port "2147483648"`},
		"When the port is the largest possible, it should return that port": {kubeconfigOf("https://api.example:2147483647"),
			"api.example", 2147483647, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, s := published(test.kubeconfig)
			host, port, err := r.publishedAPI(t.Context(), s)
			g.Expect(host).To(Equal(test.host))
			g.Expect(port).To(Equal(test.port))
			if test.fails == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.fails)))
		})
	}
}

func TestAPIProxyConfig(t *testing.T) {
	whole := apiproxy.Input{Image: "registry.example/ocp-haproxy:1", InternalAddress: "10.9.9.9", InternalPort: 7443, ExternalHost: "api.example", ExternalPort: 31443}
	tunnel := whole
	tunnel.Image, tunnel.Proxy = fixture.OCPOperator, "proxy.example:80"
	for name, test := range map[string]struct {
		change func(*reconciliation)
		want   apiproxy.Input
		fails  string
	}{
		"When nodes reach the API server directly, it should use HAProxy":          {func(*reconciliation) {}, whole, ""},
		"When nodes use a proxy, it should use the operator's program":             {func(s *reconciliation) { s.HC.Spec.Configuration = proxied("http://proxy.example") }, tunnel, ""},
		"When the proxy is not a URL, it should return an error":                   {func(s *reconciliation) { s.HC.Spec.Configuration = proxied("proxy") }, whole, "httpsProxy"},
		"When the payload has no HAProxy image, it should return an error":         {func(s *reconciliation) { s.Release = build("r", "4.20.1", "") }, whole, "haproxy-router"},
		"When the kubeconfig Secret does not exist yet, it should return an error": {func(s *reconciliation) { s.HC.Status.KubeConfig.Name = "later" }, whole, "clusters/later"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, s := published(guestKubeconfig)
			s.HC.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("10.9.9.9"), Port: ptr.To[int32](7443)}
			test.change(s)
			got, former, err := r.apiProxyConfig(t.Context(), s)
			g.Expect(former).To(BeEmpty())
			if test.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.fails)))
				g.Expect(got).To(BeEmpty())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			want, err := apiproxy.MachineConfig(test.want)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(want))
		})
	}
	t.Run("When the Secret cannot be read, it should return the error and name the Secret", func(t *testing.T) {
		g := NewWithT(t)
		r, s := published(guestKubeconfig)
		r.Client = testenv.NewGrudging(fake.NewClientBuilder().WithScheme(fixture.Scheme()).Build())
		host, port, err := r.publishedAPI(t.Context(), s)
		g.Expect(err).To(MatchError(testenv.ErrRefused))
		g.Expect(host).To(BeEmpty())
		g.Expect(port).To(BeZero())
		g.Expect(err).To(MatchError(ContainSubstring("reading Secret clusters/admin")))
	})
}

// TestPartOfLocalAPI checks that a user may set only the address, or only the port.
func TestPartOfLocalAPI(t *testing.T) {
	for name, test := range map[string]struct {
		chosen  hyperv1.APIServerNetworking
		address string
		port    int32
	}{
		"When the user sets only the address, it should use the default port": {hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("10.9.9.9")}, "10.9.9.9", 6443},
		"When the user sets only the port, it should use the default address": {hyperv1.APIServerNetworking{Port: ptr.To[int32](7443)}, "172.20.0.1", 7443},
	} {
		t.Run(name, func(t *testing.T) {
			hc := fixture.HostedCluster("clusters")
			hc.Spec.Networking.APIServer = &test.chosen
			address, port := localAPI(hc)
			NewWithT(t).Expect(address).To(Equal(test.address))
			NewWithT(t).Expect(port).To(Equal(test.port))
		})
	}
	t.Run("When the cluster sets no networks, it should use the default address, even with a proxy", func(t *testing.T) {
		g, hc := NewWithT(t), fixture.HostedCluster("clusters")
		hc.Spec.Networking = hyperv1.ClusterNetworking{}
		address, _ := localAPI(hc)
		g.Expect(address).To(Equal("172.20.0.1"))
		hc.Spec.Configuration = proxied("https://proxy.example:3128")
		g.Expect((&reconciliation{Scope: &scope.Scope{HC: hc}}).tunnelTo("api.example", 6443)).To(Equal("proxy.example:3128"))
	})
}

// TestTunnelEnds checks that a proxy without a port uses the default port of its scheme, and that a proxy without a
// host is invalid.
func TestTunnelEnds(t *testing.T) {
	for name, test := range map[string]struct {
		configuration *hyperv1.ClusterConfiguration
		want          string
		fails         bool
	}{
		"When the cluster has no configuration, it should connect directly": {nil, "", false},
		"When the cluster has no proxy, it should connect directly":         {&hyperv1.ClusterConfiguration{}, "", false},
		"When the proxy URL is HTTP without a port, it should use port 80":  {proxied("http://proxy.example"), "proxy.example:80", false},
		"When the proxy is an IPv6 address, it should be in brackets":       {proxied("http://[fd00::7]:3128"), "[fd00::7]:3128", false},
		"When the proxy has no host, it should return an error":             {proxied("http://:3128"), "", true},
		"When the proxy URL is invalid, it should return an error":          {proxied("http://proxy.example:x"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			hc := fixture.HostedCluster("clusters")
			hc.Spec.Configuration = test.configuration
			got, err := (&reconciliation{Scope: &scope.Scope{HC: hc}}).tunnelTo("api.example", 6443)
			NewWithT(t).Expect(got).To(Equal(test.want))
			NewWithT(t).Expect(err != nil).To(Equal(test.fails))
		})
	}
}

func proxied(https string) *hyperv1.ClusterConfiguration {
	return &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPSProxy: https}}
}

// tunnelTo returns the proxy through which nodes reach an API server.
func (s *reconciliation) tunnelTo(host string, port int32) (string, error) {
	return s.apiTunnel(s.reachesAPIDirectly(host, port))
}
