// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	"k8s.io/utils/ptr"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// configured returns a scope whose payload is known, with a configuration that a test may change.
func configured(mutate func(*reconciliation)) *reconciliation {
	s := scopeWith()
	s.HC = fixture.HostedCluster("clusters")
	s.Release = fixture.Payloads()[fixture.ReleaseImage]
	s.config.Raw = "raw"
	mutate(s)
	return s
}

func hashes(t *testing.T, mutate func(*reconciliation)) (hash, withoutVersion string) {
	t.Helper()
	s := configured(mutate)
	NewWithT(t).Expect(s.hashConfig()).To(Succeed())
	return s.config.Hash, s.config.HashWithoutVersion
}

func TestHashConfig(t *testing.T) {
	base, baseWithout := hashes(t, func(*reconciliation) {})
	for _, tc := range []struct {
		name                  string
		mutate                func(*reconciliation)
		rolls, changesWithout bool
	}{
		{"When nothing changes, it should not replace nodes", func(*reconciliation) {}, false, false},
		{"When the configuration changes, it should replace nodes", func(s *reconciliation) { s.config.Raw = "other" }, true, true},
		{"When only the version changes, it should change only the hash that includes the version", func(s *reconciliation) { s.Release = fixture.Payloads()[fixture.OCPImage] }, true, false},
		{"When another pull secret is set, it should replace nodes", func(s *reconciliation) { s.HC.Spec.PullSecret.Name = "other" }, true, true},
		{"When the trust bundle is removed, it should replace nodes", func(s *reconciliation) { s.HC.Spec.AdditionalTrustBundle = nil }, true, true},
		{"When a proxy is set, it should replace nodes", func(s *reconciliation) {
			s.HC.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPProxy: "http://p"}}
		}, true, false},
		{"When machines switch to cloud-config, it should replace nodes", func(s *reconciliation) { s.config.Format = hyperv1.UserDataCloudConfig }, true, true},
		{"When machines already use Ignition, it should not replace nodes", func(s *reconciliation) { s.config.Format = hyperv1.UserDataIgnition }, false, false},
		{"When labels and replicas change, it should not replace nodes", func(s *reconciliation) {
			s.Pool.Spec.NodeLabels, s.Pool.Spec.Replicas = map[string]string{"a": "b"}, ptr.To[int32](9)
		}, false, false},
		{"When the API server's configuration changes, it should not replace nodes", func(s *reconciliation) {
			s.HC.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{}}
		}, false, false},
		{"When an empty import mode is added, it should not replace nodes", func(s *reconciliation) {
			s.HC.Spec.Configuration = &hyperv1.ClusterConfiguration{Image: &configv1.ImageSpec{}}
		}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			hash, without := hashes(t, tc.mutate)
			g.Expect(hash != base).To(Equal(tc.rolls))
			g.Expect(without != baseWithout).To(Equal(tc.changesWithout))
		})
	}
	t.Run("When the hash is computed, it should be the documented hash", func(t *testing.T) {
		g := NewWithT(t)
		s := configured(func(*reconciliation) {})
		global, err := globalConfig(s.HC, s.Distribution(), s.Release.Version())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(base).To(Equal(naming.Hash("raw1.36.3" + fixture.PullSecret + fixture.TrustBundle + global)))
		g.Expect(baseWithout).To(Equal(naming.Hash("raw" + fixture.PullSecret + fixture.TrustBundle)))
	})
}

func TestLocalAPI(t *testing.T) {
	for _, tc := range []struct {
		name    string
		mutate  func(*hyperv1.HostedCluster)
		address string
		port    int32
	}{
		{"When the address is not set, it should use the default address", func(*hyperv1.HostedCluster) {}, "172.20.0.1", 6443},
		{"When the service network is IPv6, it should use the IPv6 default address", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.ServiceNetwork[0].CIDR = *ipnet.MustParseCIDR("fd02::/112")
		}, "fd00::1", 6443},
		{"When the user sets address and port, it should use them", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("10.9.9.9"), Port: ptr.To[int32](7443)}
		}, "10.9.9.9", 7443},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hc := fixture.HostedCluster("clusters")
			tc.mutate(hc)
			address, port := localAPI(hc)
			g := NewWithT(t)
			g.Expect(address).To(Equal(tc.address))
			g.Expect(port).To(Equal(tc.port))
		})
	}
}

func TestCoreConfigs(t *testing.T) {
	t.Run("When the cluster has image mirrors, it should expect one more configuration from the control plane", func(t *testing.T) {
		hc := fixture.HostedCluster("clusters")
		g := NewWithT(t)
		g.Expect(coreConfigs(hc)).To(Equal(2))
		hc.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "a", Mirrors: []string{"b"}}}
		g.Expect(coreConfigs(hc)).To(Equal(3))
	})
}

func TestParseSecretName(t *testing.T) {
	s := scopeWith()
	for _, tc := range []struct{ name, secret, prefix, hash string }{
		{"When the Secret is a token, it should return the hash in its name", "token-demo-0a1b2c3d", "token", "0a1b2c3d"},
		{"When the Secret is user-data, it should return the hash in its name", "user-data-demo-0a1b2c3d", "user-data", "0a1b2c3d"},
		{"When the Secret is another kind of Secret, it should return no hash", "pull-secret", "", ""},
		{"When the Secret belongs to another NodePool, it should return no hash", "token-other-0a1b2c3d", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			prefix, hash := s.ParseSecretName(tc.secret)
			g := NewWithT(t)
			g.Expect(prefix).To(Equal(tc.prefix))
			g.Expect(hash).To(Equal(tc.hash))
		})
	}
}

func TestResourcesName(t *testing.T) {
	t.Run("When names are long, the result should fit into a label key with the prefix of Cluster API", func(t *testing.T) {
		s := configured(func(s *reconciliation) {
			s.HC.Spec.InfraID = "a-very-long-infrastruct-abcde"
			s.Pool.Name, s.Pool.Spec.ClusterName = "a-pool-with-a-rather-long-name", "a-cluster-with-a-long-name"
		})
		NewWithT(t).Expect(len(s.ResourcesName())).To(BeNumerically("<=", 43))
	})
}

func TestNodesFollowTLSProfile(t *testing.T) {
	for version, follows := range map[string]bool{"4.22.9": false, "4.23.0": true, "5.1.0": true} {
		t.Run("When the TLS profile changes in version "+version+", it should replace nodes only if the version configures nodes with the profile", func(t *testing.T) {
			g, hc, traits := NewWithT(t), fixture.HostedCluster("clusters"), distributions.Of(releaseinfo.OpenShift)
			before, err := globalConfig(hc, traits, version)
			g.Expect(err).NotTo(HaveOccurred())
			hc.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{}}
			g.Expect(globalConfig(hc, traits, version)).To(Equal(before), "no profile is set")
			hc.Spec.Configuration.APIServer.TLSSecurityProfile = &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}
			after, err := globalConfig(hc, traits, version)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(after != before).To(Equal(follows))
		})
	}
}
