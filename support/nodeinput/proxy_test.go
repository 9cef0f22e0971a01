// SPDX-License-Identifier: Apache-2.0

package nodeinput_test

import (
	"testing"

	. "github.com/onsi/gomega"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/support/nodeinput"
)

func TestReadProxy(t *testing.T) {
	networking := hyperv1.ClusterNetworking{
		MachineNetwork: []hyperv1.MachineNetworkEntry{{CIDR: *ipnet.MustParseCIDR("192.0.2.0/24")}},
		ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: *ipnet.MustParseCIDR("10.132.0.0/14")}},
		ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: *ipnet.MustParseCIDR("172.31.0.0/16")}},
	}
	for _, tc := range []struct {
		name string
		spec *configv1.ProxySpec
		want string
	}{
		{"When the proxy is not configured, it should return an empty noProxy", nil, ""},
		{"When only noProxy is configured, it should return an empty noProxy", &configv1.ProxySpec{NoProxy: "a.example"}, ""},
		{"When there is a proxy, noProxy should have the internal addresses and those of the user", &configv1.ProxySpec{HTTPSProxy: "http://p", NoProxy: "b.example, a.example,"},
			".cluster.local,.hypershift.local,.svc,10.132.0.0/14,127.0.0.1,172.31.0.0/16,192.0.2.0/24,a.example,api.example,b.example,localhost"},
		{"When noProxy has an asterisk, it should return only that", &configv1.ProxySpec{HTTPProxy: "http://p", NoProxy: "a.example,*"}, "*"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(nodeinput.ReadProxy(tc.spec, networking, "api.example", "").NoProxy).To(Equal(tc.want))
		})
	}
}

func TestProxyCheck(t *testing.T) {
	for _, tc := range []struct {
		name    string
		proxy   nodeinput.Proxy
		refusal string
	}{
		{"When the URLs are complete, it should accept them", nodeinput.Proxy{HTTP: "http://u:p@a.example:3128", HTTPS: "https://a.example"}, ""},
		{"When the scheme is missing, it should name the field", nodeinput.Proxy{HTTP: "proxy.example:3128"}, "httpProxy is not a proxy URL"},
		{"When the scheme is not supported, it should return an error", nodeinput.Proxy{HTTPS: "socks5://secret@proxy.example"}, "httpsProxy is not a proxy URL"},
		{"When noProxy has a line break, it should return an error", nodeinput.Proxy{HTTP: "http://p", NoProxy: "a\nLD_PRELOAD=/x"}, "noProxy has a line break"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, err := NewWithT(t), tc.proxy.Check()
			if tc.refusal == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.refusal)))
			g.Expect(err.Error()).NotTo(ContainSubstring("secret"), "a URL may hold a password")
		})
	}
}

func TestConfigurationHash(t *testing.T) {
	t.Run("When nothing is configured, it should return the hash of null", func(t *testing.T) {
		NewWithT(t).Expect(nodeinput.ConfigurationHash(nil)).To(Equal(nodeinput.Hash("null")))
	})
	t.Run("When the import mode is empty, it should be omitted", func(t *testing.T) {
		g := NewWithT(t)
		for raw, want := range map[string]string{
			`{"a":1,"imageStreamImportMode":""}`: `{"a":1}`, `{"imageStreamImportMode":"","a":1}`: `{"a":1}`,
			`{"imageStreamImportMode":""}`: `{}`, `{"imageStreamImportMode":"Legacy"}`: `{"imageStreamImportMode":"Legacy"}`,
		} {
			g.Expect(string(nodeinput.WithoutEmptyImportMode([]byte(raw)))).To(Equal(want))
		}
	})
}
