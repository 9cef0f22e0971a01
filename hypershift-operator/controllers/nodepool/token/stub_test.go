// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// booted returns a scope of a pool whose machines can be installed, and a token.
func booted(payload string, proxy *configv1.ProxySpec) (*Secrets, *corev1.Secret) {
	s := pass()
	s.Platform, _ = fixture.Platforms(nil).For(hyperv1.MAASPlatform)
	s.Release, s.IgnitionCA = fixture.Payloads()[payload], []byte("CA")
	s.HC.Status.IgnitionEndpoint = "10.1.2.3:30443"
	if proxy != nil {
		s.HC.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: proxy}
	}
	return s, &corev1.Secret{Data: map[string][]byte{"token": []byte("bearer")}}
}

// TestFirstBootForIgnition checks that the user-data refers to the ignition-server, with its CA and the token.
func TestFirstBootForIgnition(t *testing.T) {
	g := NewWithT(t)
	s, token := booted(fixture.OCPImage, &configv1.ProxySpec{HTTPSProxy: "http://proxy.example:3129"})
	raw, err := s.firstBoot("hash", token)
	g.Expect(err).NotTo(HaveOccurred())
	var got types.Config
	g.Expect(json.Unmarshal(raw, &got)).To(Succeed())
	header := func(name, value string) types.HTTPHeader { return types.HTTPHeader{Name: name, Value: &value} }
	want := types.Ignition{
		Version: "3.2.0",
		Security: types.Security{TLS: types.TLS{CertificateAuthorities: []types.Resource{
			{Source: ptr.To("data:text/plain;base64,Q0E=")}}}},
		Config: types.IgnitionConfig{Merge: []types.Resource{{
			Source: ptr.To("https://10.1.2.3:30443/ignition"),
			HTTPHeaders: types.HTTPHeaders{
				header("Authorization", "Bearer YmVhcmVy"), header("NodePool", "clusters/demo"), header("TargetConfigVersionHash", "hash")},
		}}},
		Proxy: types.Proxy{HTTPSProxy: ptr.To("http://proxy.example:3129"), NoProxy: []types.NoProxyItem{
			".cluster.local", ".hypershift.local", ".svc", "10.132.0.0/14", "127.0.0.1", "172.31.0.0/16", "localhost"}},
	}
	g.Expect(cmp.Diff(want, got.Ignition)).To(BeEmpty(), "-want +got")
	g.Expect(got.Systemd.Units).To(HaveLen(1), "what the platform adds for OpenShift's installation on its machines")
}

// TestFirstBootForCloudInit checks that the token determines the format, because machines of an older configuration
// keep theirs.
func TestFirstBootForCloudInit(t *testing.T) {
	g := NewWithT(t)
	s, token := booted(fixture.ReleaseImage, nil)
	scope.Annotate(token, hyperv1.TokenSecretUserDataFormatAnnotation, "CloudConfig")
	raw, err := s.firstBoot("hash", token)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(raw)).To(HavePrefix("#cloud-config\n"))
	for _, text := range []string{"Authorization: Bearer YmVhcmVy\n", "NodePool: clusters/demo\n", "TargetConfigVersionHash: hash\n", "10.1.2.3:30443\n", "CA\n"} {
		g.Expect(string(raw)).To(ContainSubstring(text))
	}
	s.IgnitionCA = []byte(strings.Repeat("C", 16<<10))
	_, err = s.firstBoot("hash", token)
	g.Expect(err).To(MatchError(ContainSubstring("user-data of NodePool clusters/demo")))
}

// TestIgnitionProxy checks the proxy through which a machine fetches its configuration.
func TestIgnitionProxy(t *testing.T) {
	usual := []types.NoProxyItem{".cluster.local", ".hypershift.local", ".svc", "10.132.0.0/14", "127.0.0.1", "172.31.0.0/16", "localhost"}
	direct := []types.NoProxyItem{".cluster.local", ".hypershift.local", ".svc", "10.1.2.3", "10.132.0.0/14", "127.0.0.1", "172.31.0.0/16", "localhost"}
	for name, tc := range map[string]struct {
		payload string
		proxy   *configv1.ProxySpec
		want    types.Proxy
	}{
		"When no proxy is configured, it should connect directly":                      {fixture.ReleaseImage, nil, types.Proxy{}},
		"When only noProxy is set, it should connect directly":                         {fixture.ReleaseImage, &configv1.ProxySpec{NoProxy: "a.example"}, types.Proxy{}},
		"When only an HTTPS proxy is set, it should use that one":                      {fixture.OCPImage, &configv1.ProxySpec{HTTPSProxy: "http://s"}, types.Proxy{HTTPSProxy: ptr.To("http://s"), NoProxy: usual}},
		"When only an HTTP proxy is set, it should use that one":                       {fixture.OCPImage, &configv1.ProxySpec{HTTPProxy: "http://p"}, types.Proxy{HTTPProxy: ptr.To("http://p"), NoProxy: usual}},
		"When both proxies are set, it should use both":                                {fixture.OCPImage, &configv1.ProxySpec{HTTPProxy: "http://p", HTTPSProxy: "http://s"}, types.Proxy{HTTPProxy: ptr.To("http://p"), HTTPSProxy: ptr.To("http://s"), NoProxy: usual}},
		"When the release is Kubernetes, it should add the ignition-server to noProxy": {fixture.ReleaseImage, &configv1.ProxySpec{HTTPProxy: "http://p"}, types.Proxy{HTTPProxy: ptr.To("http://p"), NoProxy: direct}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := booted(tc.payload, tc.proxy)
			if diff := cmp.Diff(tc.want, s.ignitionProxy()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	t.Run("When the cluster configuration has no proxy, it should connect directly", func(t *testing.T) {
		s, _ := booted(fixture.ReleaseImage, nil)
		s.HC.Spec.Configuration = &hyperv1.ClusterConfiguration{}
		NewWithT(t).Expect(s.ignitionProxy()).To(BeZero())
	})
}

func TestHostOf(t *testing.T) {
	for endpoint, want := range map[string]string{
		"ignition.example": "ignition.example", "ignition.example:443": "ignition.example", "10.1.2.3:30443": "10.1.2.3", "[fd00::1]:443": "fd00::1", "": "",
	} {
		t.Run("When an endpoint is "+endpoint+", it should return the host", func(t *testing.T) {
			NewWithT(t).Expect(hostOf(endpoint)).To(Equal(want))
		})
	}
}

func TestStubProxy(t *testing.T) {
	t.Run("When the cluster has a proxy, machines should fetch their configuration through it", func(t *testing.T) {
		s, _ := booted(fixture.ReleaseImage, &configv1.ProxySpec{HTTPSProxy: "http://p", NoProxy: "a.example"})
		s.HC.Status.IgnitionEndpoint = "ignition.example"
		raw, err := s.stub("hash", []byte("token"))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(And(ContainSubstring(`"httpsProxy":"http://p"`), ContainSubstring(`"a.example"`), ContainSubstring("https://ignition.example/ignition")))
	})
}
