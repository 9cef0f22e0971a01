// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/pki"
)

// listed returns the certificates of a control plane by the names of their Secrets.
func listed(t *testing.T, edit func(*hyperv1.HostedControlPlane, *component.Infra)) map[string]certificate {
	t.Helper()
	hcp := fixture.ControlPlane()
	infra := &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 30443}, Ignition: component.Endpoint{Host: "192.0.2.11"}}
	edit(hcp, infra)
	list, err := certificates(hcp, infra)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]certificate{}
	for _, c := range list {
		if _, twice := byName[c.secret]; twice {
			t.Errorf("two certificates fight for Secret %s", c.secret)
		}
		byName[c.secret] = c
	}
	return byName
}

// TestNamesOfTheAPIServer checks the names in the API server's certificate: a client rejects a certificate that does
// not name the address that it dialed.
func TestNamesOfTheAPIServer(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*hyperv1.HostedControlPlane, *component.Infra)
		want []string
	}{
		{"the spec has only defaults", func(*hyperv1.HostedControlPlane, *component.Infra) {}, []string{"192.0.2.10", "172.31.0.1", "kubernetes.default.svc", "localhost"}},
		{"services have addresses of both families", func(hcp *hyperv1.HostedControlPlane, _ *component.Infra) {
			hcp.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: *ipnet.MustParseCIDR("10.0.0.0/24")}, {CIDR: *ipnet.MustParseCIDR("fd02::/112")}}
		}, []string{"10.0.0.1", "fd02::1"}},
		{"kubeAPIServerDNSName is set", func(hcp *hyperv1.HostedControlPlane, _ *component.Infra) {
			hcp.Spec.KubeAPIServerDNSName = "kube.example.com"
		}, []string{"kube.example.com", "192.0.2.10"}},
		{"its address changes", func(_ *hyperv1.HostedControlPlane, infra *component.Infra) {
			infra.API.Host, infra.APINames = "new.example.com", []string{"192.0.2.10", "next.example.com"}
		}, []string{"new.example.com", "192.0.2.10", "next.example.com"}},
		{"an advertise address is set", func(hcp *hyperv1.HostedControlPlane, _ *component.Infra) {
			hcp.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("172.20.0.1")}
		}, []string{"172.20.0.1"}},
		{"its network is configured without an address", func(hcp *hyperv1.HostedControlPlane, _ *component.Infra) {
			hcp.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{}
		}, []string{"192.0.2.10"}},
	} {
		t.Run("When "+tc.name+" its certificate should name the addresses that clients use", func(t *testing.T) {
			NewWithT(t).Expect(listed(t, tc.edit)[KASServer].leaf.Hosts).To(ContainElements(tc.want))
		})
	}
	t.Run("When the service network is too small for the API server's address, it should return an error", func(t *testing.T) {
		hcp := fixture.ControlPlane()
		hcp.Spec.Networking.ServiceNetwork[0].CIDR = *ipnet.MustParseCIDR("10.0.0.0/32")
		_, err := certificates(hcp, &component.Infra{})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is too small")))
	})
}

func TestIgnitionCertificate(t *testing.T) {
	t.Run("When the Ignition host is unknown, it should list no certificate for it", func(t *testing.T) {
		NewWithT(t).Expect(listed(t, func(_ *hyperv1.HostedControlPlane, infra *component.Infra) { infra.Ignition.Host = "" })).NotTo(HaveKey(IgnitionServing))
	})
	t.Run("When the Ignition host changes, the certificate should still name the previous host", func(t *testing.T) {
		got := listed(t, func(_ *hyperv1.HostedControlPlane, infra *component.Infra) {
			infra.Ignition.Host, infra.IgnitionNames = "new.example.com", []string{"old.example.com"}
		})
		NewWithT(t).Expect(got[IgnitionServing].leaf.Hosts).To(ContainElements("new.example.com", "old.example.com", "ignition-server"))
	})
}

// TestWhoIsTrusted checks which bundles contain which signers. A certificate whose signer is in no bundle is useless,
// and a signer in an unrelated bundle grants too much.
func TestWhoIsTrusted(t *testing.T) {
	trusts := map[string][]string{}
	for _, b := range bundles {
		trusts[b.configMap] = b.signers
	}
	for name, c := range listed(t, func(*hyperv1.HostedControlPlane, *component.Infra) {}) {
		t.Run("When the certificate is "+name+" the bundle that verifies it should contain its signer", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(Signers()).To(ContainElement(c.signer))
			if !c.leaf.Client || c.leaf.Server {
				g.Expect(c.leaf.Hosts).NotTo(BeEmpty())
				return
			}
			bundle := map[string]string{EtcdSigner: EtcdBundle, EtcdMetricsSigner: EtcdMetricsBundle, AggregatorSigner: AggregatorBundle}[c.signer]
			if bundle == "" {
				bundle = ClientBundle
			}
			g.Expect(trusts[bundle]).To(ContainElement(c.signer))
			g.Expect(c.leaf.CommonName).NotTo(BeEmpty())
			if slices.Contains(c.leaf.Organizations, "system:masters") {
				g.Expect(name).To(Equal(SystemAdminClient), "nobody else may do all")
			}
		})
	}
	for _, signer := range []string{EtcdSigner, AggregatorSigner, RootCA, IgnitionCA} {
		t.Run("When the signer is "+signer+" the API server should not accept its client certificates", func(t *testing.T) {
			NewWithT(t).Expect(trusts[ClientBundle]).NotTo(ContainElement(signer))
		})
	}
}

// TestAuthorities checks the common names of authorities, which certificates contain. They differ from the names of
// the Secrets.
func TestAuthorities(t *testing.T) {
	t.Run("When it creates the CAs, their subjects should say what they sign", func(t *testing.T) {
		w, names := newWorld(t), map[string]string{}
		if err := w.pass(); err != nil {
			t.Fatal(err)
		}
		for _, a := range authorities {
			made := parsed(t, w.secret(a.secret).Data[pki.CACertKey])
			names[a.secret] = made.Subject.CommonName
			NewWithT(t).Expect(made.Subject.OrganizationalUnit).To(ConsistOf("openshift"))
		}
		NewWithT(t).Expect(names).To(Equal(map[string]string{
			"root-ca": "root-ca", "cluster-signer-ca": "kube-csr-signer", "etcd-signer": "etcd-signer", "etcd-metrics-signer": "etcd-metrics-signer",
			"kas-aggregator-client-signer": "aggregator-signer", "kube-control-plane-signer": "kube-control-plane-signer",
			"kube-apiserver-to-kubelet-signer": "kube-apiserver-to-kubelet-signer", "system-admin-signer": "admin-kubeconfig-signer",
			"customer-system-admin-signer": "customer-break-glass-signer", "sre-system-admin-signer": "sre-break-glass-signer",
			"hcco-signer": "hcco-signer", "ignition-server-ca-cert": "ignition-root-ca",
		}))
	})
	t.Run("When machines learned a CA at installation, it should keep the chain from that CA", func(t *testing.T) {
		var kept []string
		for _, a := range authorities {
			if (turnover{}).of(a).KeepChain {
				kept = append(kept, a.secret)
			}
		}
		NewWithT(t).Expect(kept).To(ConsistOf(RootCA, ClusterSignerCA, KubeletClientSigner, IgnitionCA))
	})
	t.Run("When a component gets a CA bundle, the bundle should contain exactly these signers", func(t *testing.T) {
		trusts := map[string][]string{}
		for _, b := range bundles {
			trusts[b.configMap] = b.signers
		}
		g := NewWithT(t)
		g.Expect(trusts).To(HaveLen(6))
		g.Expect(trusts["root-ca"]).To(ConsistOf(RootCA))
		g.Expect(trusts["etcd-ca"]).To(ConsistOf(EtcdSigner))
		g.Expect(trusts["etcd-metrics-ca"]).To(ConsistOf(EtcdMetricsSigner))
		g.Expect(trusts["aggregator-client-ca"]).To(ConsistOf(AggregatorSigner))
		g.Expect(trusts["client-ca"]).To(ConsistOf(ControlPlaneSigner, KubeletClientSigner, SystemAdminSigner, ConfigOperatorCA, ClusterSignerCA,
			CustomerBreakGlassSigner, SREBreakGlassSigner))
		g.Expect(trusts[KubeletClientBundle]).To(ConsistOf(KubeletClientSigner, ClusterSignerCA), "whom kubelets let in")
	})
}

func TestKubeconfigs(t *testing.T) {
	byName := func(edit func(*hyperv1.HostedControlPlane)) map[string]kubeconfig {
		hcp := fixture.ControlPlane()
		edit(hcp)
		found := map[string]kubeconfig{}
		for _, k := range kubeconfigs(hcp, &component.Infra{API: component.Endpoint{Host: "fd00::1", Port: 6443}}) {
			found[k.secret] = k
		}
		return found
	}
	t.Run("When the API server has an IPv6 address, external kubeconfigs should contain it in brackets", func(t *testing.T) {
		g, got := NewWithT(t), byName(func(*hyperv1.HostedControlPlane) {})
		g.Expect(got[AdminKubeconfig].server).To(Equal("https://[fd00::1]:6443"))
		g.Expect(got[BootstrapKubeconfig].server).To(Equal("https://[fd00::1]:6443"))
		g.Expect(got).NotTo(HaveKey(CustomAdminKubeconfig))
	})
	t.Run("When spec.kubeconfig names a Secret, it should write the admin kubeconfig there only", func(t *testing.T) {
		g, got := NewWithT(t), byName(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "mine", Key: "value"}
		})
		g.Expect(got).NotTo(HaveKey(AdminKubeconfig))
		g.Expect(got["mine"].key).To(Equal("value"))
		g.Expect(got["mine"].client).To(Equal(SystemAdminClient))
	})
	t.Run("When a component uses a kubeconfig, it should authenticate with its own client certificate", func(t *testing.T) {
		users := map[string]string{}
		for name, k := range byName(func(*hyperv1.HostedControlPlane) {}) {
			users[name] = k.client
		}
		NewWithT(t).Expect(users).To(Equal(map[string]string{
			"service-network-admin-kubeconfig": SystemAdminClient, "admin-kubeconfig": SystemAdminClient, "bootstrap-kubeconfig": NodeBootstrap,
			"demo-abcde-kubeconfig": ClusterAPIClient, hosted.ProviderKubeconfig("demo-abcde"): ProviderClient, AutoscalerKubeconfig: AutoscalerClient, IgnitionKubeconfig: IgnitionClient,
			HCCOKubeconfig: HCCOClient, KCMKubeconfig: KCMClient, SchedulerKubeconfig: SchedulerClient,
		}))
	})
}

// TestOverlaps checks that a previous signer remains trusted as long as its certificates may be in use, also outside
// the cluster.
func TestOverlaps(t *testing.T) {
	const year = pki.DefaultValidity
	overlaps := func(t *testing.T, text string, life time.Duration) map[string]time.Duration {
		t.Helper()
		hcp := fixture.ControlPlane()
		if text != "" {
			hcp.Annotations = map[string]string{OverlapAnnotation: text}
		}
		turnover, err := turnoverOf(hcp, pki.Lifetime{Validity: life})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]time.Duration{ServiceAccountKeys: turnover.ofKeys().Overlap}
		for _, a := range authorities {
			got[a.secret] = turnover.of(a).Overlap
		}
		return got
	}
	week := NodeCertificateLife + 24*time.Hour
	for _, tc := range []struct {
		name, text string
		life       time.Duration
		signer     string
		want       time.Duration
	}{
		{"no overlap is set", "", 0, RootCA, 0},
		{"no overlap is set and nodes keep the certificates,", "", 0, ClusterSignerCA, week},
		{"no overlap is set and administrators copy the certificates,", "", 0, SystemAdminSigner, year},
		{"certificates that administrators copy live a day,", "", 24 * time.Hour, SystemAdminSigner, 24 * time.Hour},
		{"certificates live a day and those for break glass longer,", "", 24 * time.Hour, CustomerBreakGlassSigner, BreakGlassCertificateLife},
		{"certificates live a day and tokens up to a year,", "", 24 * time.Hour, ServiceAccountKeys, year},
		{"the overlap is 0s, but nodes still need it", "0s", 0, ClusterSignerCA, week},
		{"the overlap is 0s", "0s", 0, SystemAdminSigner, 0},
		{"the overlap is 0s, for tokens", "0s", 0, ServiceAccountKeys, 0},
		{"the overlap is a month", "720h", 0, RootCA, 720 * time.Hour},
		{"the overlap is a month, which is longer than nodes need", "720h", 0, ClusterSignerCA, 720 * time.Hour},
		{"the overlap is a month, for tokens", "720h", 0, ServiceAccountKeys, 720 * time.Hour},
	} {
		t.Run("When "+tc.name+" the previous "+tc.signer+" should remain trusted for the expected overlap", func(t *testing.T) {
			NewWithT(t).Expect(overlaps(t, tc.text, tc.life)[tc.signer]).To(Equal(tc.want))
		})
	}
}

func TestOwnEtcd(t *testing.T) {
	for _, tc := range []struct {
		name string
		spec hyperv1.EtcdSpec
		want bool
	}{
		{"managed", hyperv1.EtcdSpec{ManagementType: hyperv1.Managed}, false},
		{"managed, with a block that is left over", hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Unmanaged: &hyperv1.UnmanagedEtcdSpec{}}, false},
		{"unmanaged without an unmanaged block", hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged}, false},
		{"the user's", hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{}}, true},
	} {
		t.Run("When etcd is "+tc.name+" it should report whether the user provides it", func(t *testing.T) {
			NewWithT(t).Expect(BringsEtcd(&hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{Etcd: tc.spec}})).To(Equal(tc.want))
		})
	}
	t.Run("When etcd's credentials are invalid, the error should wrap the cause", func(t *testing.T) {
		err := error(&OwnEtcdError{Err: fs.ErrNotExist})
		NewWithT(t).Expect(errors.Is(err, fs.ErrNotExist)).To(BeTrue())
		NewWithT(t).Expect(err.Error()).To(Equal(fs.ErrNotExist.Error()))
	})
}

func TestRenewalFraction(t *testing.T) {
	for text, want := range map[string]float64{"0.7": 0.7, "70": 0.7, "99": 0.99, "1": 0.01, "0.999": 0.999, "0": 0, "100": 0, "-1": 0, "NaN": 0, "": 0, "70%": 0, "Inf": 0} {
		t.Run("When the text is "+text+" it should return a fraction below 1 or an error", func(t *testing.T) {
			g := NewWithT(t)
			got, err := RenewalFraction(text)
			g.Expect(got).To(Equal(want))
			g.Expect(err == nil).To(Equal(want != 0))
		})
	}
}
