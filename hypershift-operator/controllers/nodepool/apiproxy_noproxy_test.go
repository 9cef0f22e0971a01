// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// TestAPITunnel checks when nodes reach the API server through the proxy. The API server is published at
// api.example.com:31443. The local address is 172.20.0.1:6443, the Service network 172.31.0.0/16 and the pod network
// 10.132.0.0/14.
func TestAPITunnel(t *testing.T) {
	const proxy, through = "http://proxy.example:3128", "proxy.example:3128"
	for name, tc := range map[string]struct{ https, noProxy, want, fails string }{
		"a cluster without a proxy connects directly":                                 {},
		"a cluster with a proxy uses it":                                              {https: proxy, want: through},
		"the default port is that of the scheme":                                      {https: "https://proxy.example", want: "proxy.example:443"},
		"a password stays out of the command line":                                    {https: "http://user:secret@proxy.example:3128", want: through},
		"an httpsProxy that is not a URL is refused":                                  {https: "proxy", fails: "spec.configuration.proxy.httpsProxy is not a URL"},
		"the published name in noProxy disables the proxy":                            {https: proxy, noProxy: "other.example, API.example.com"},
		"the published name with its port in noProxy disables the proxy":              {https: proxy, noProxy: "api.example.com:31443"},
		"the published name with another port in noProxy does not disable the proxy":  {https: proxy, noProxy: "api.example.com:6443", want: through},
		"a longer name in noProxy does not disable the proxy":                         {https: proxy, noProxy: "api.example.com.net,my-api.example.com", want: through},
		"the domain of the published name in noProxy disables the proxy":              {https: proxy, noProxy: ".example.com"},
		"the domain without a dot in noProxy disables the proxy":                      {https: proxy, noProxy: "example.com"},
		"a domain that ends alike in noProxy does not disable the proxy":              {https: proxy, noProxy: ".ample.com", want: through},
		"an asterisk in noProxy disables the proxy":                                   {https: proxy, noProxy: "*"},
		"the local address in noProxy disables the proxy":                             {https: proxy, noProxy: "172.20.0.1"},
		"a longer address in noProxy does not disable the proxy":                      {https: proxy, noProxy: "172.20.0.10,1.172.20.0.1", want: through},
		"a network with the local address in noProxy disables the proxy":              {https: proxy, noProxy: "172.16.0.0/12"},
		"the name of the Service in noProxy disables the proxy":                       {https: proxy, noProxy: "localhost,kubernetes.default.svc"},
		"a name that begins like the Service's in noProxy does not disable the proxy": {https: proxy, noProxy: "kubernetes.example.org", want: through},
		"the domain of all Services in noProxy does not disable the proxy":            {https: proxy, noProxy: ".svc,.cluster.local", want: through},
		"the Service network in noProxy disables the proxy":                           {https: proxy, noProxy: "192.0.2.0/24,172.31.0.0/16"},
		"the pod network in noProxy disables the proxy":                               {https: proxy, noProxy: "10.132.0.0/14"},
		"a network around the pod network in noProxy disables the proxy":              {https: proxy, noProxy: "10.0.0.0/8"},
		"a part of the pod network in noProxy does not disable the proxy":             {https: proxy, noProxy: "10.132.0.0/16", want: through},
		"invalid entries in noProxy are ignored":                                      {https: proxy, noProxy: ",10.0.0.0/99,://", want: through},
	} {
		t.Run(name, func(t *testing.T) {
			g, hc := NewWithT(t), fixture.HostedCluster("clusters")
			hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPSProxy: tc.https, NoProxy: tc.noProxy}}
			got, err := (&reconciliation{Scope: &scope.Scope{HC: hc}}).tunnelTo("api.example.com", 31443)
			if tc.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

// TestPathOfEarlierOperator checks pools for which 0.1.0 chose a different path to the API server. They keep their hash
// until their configuration changes.
func TestPathOfEarlierOperator(t *testing.T) {
	for noProxy, direct := range map[string]bool{".example": false, "kubernetes.example.org": true} {
		rendered := func(t *testing.T, prepare func(*reconciliation)) *reconciliation {
			t.Helper()
			r, s := published(guestKubeconfig)
			s.HC.Spec.Configuration = proxied("http://proxy.example")
			s.HC.Spec.Configuration.Proxy.NoProxy = noProxy
			prepare(s)
			config, former, err := r.apiProxyConfig(t.Context(), s)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(former).NotTo(BeEmpty())
			s.formerAPIProxy = former
			NewWithT(t).Expect(s.render([]string{config, "z: user"})).To(Succeed())
			NewWithT(t).Expect(s.hashConfig()).To(Succeed())
			return s
		}
		before := func(t *testing.T) string {
			t.Helper()
			s := rendered(t, func(*reconciliation) {})
			config, err := s.apiProxyFor(direct, "api.example", 31443)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(s.join([]string{config, "z: user"})).To(Succeed())
			NewWithT(t).Expect(s.hashConfig()).To(Succeed())
			return s.config.Hash
		}
		t.Run("a new pool follows noProxy "+noProxy, func(t *testing.T) {
			NewWithT(t).Expect(rendered(t, func(*reconciliation) {}).config.Hash).NotTo(Equal(before(t)))
		})
		t.Run("a pool of the earlier operator keeps its path with noProxy "+noProxy, func(t *testing.T) {
			was := before(t)
			s := rendered(t, func(s *reconciliation) { scope.Annotate(s.Pool, hyperv1.NodePoolCurrentConfigVersionAnnotation, was) })
			NewWithT(t).Expect(s.config.Hash).To(Equal(was))
		})
		t.Run("a machine of the earlier operator keeps its path with noProxy "+noProxy, func(t *testing.T) {
			was := before(t)
			s := rendered(t, func(s *reconciliation) {
				s.Machines = []*clusterv1.Machine{{Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{
					DataSecretName: ptr.To(scope.UserDataPrefix + "-" + s.Pool.Name + "-" + was)}}}}
			})
			NewWithT(t).Expect(s.config.Hash).To(Equal(was))
		})
	}
}
