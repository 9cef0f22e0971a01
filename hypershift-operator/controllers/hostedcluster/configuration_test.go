// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		mutate func(*hyperv1.HostedCluster)
		want   string
	}{
		{"When the cluster is the unchanged fixture, it should be accepted", func(*hyperv1.HostedCluster) {}, ""},
		{"When the cluster and service networks overlap, it should be rejected", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.ServiceNetwork[0].CIDR = *ipnet.MustParseCIDR("10.133.0.0/16")
		}, "cluster network 10.132.0.0/14 and the service network 10.133.0.0/16 overlap"},
		{"When the machine network overlaps another network, it should be rejected", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: *ipnet.MustParseCIDR("172.31.4.0/24")}}
		}, "overlap"},
		{"When the advertise address is in the service network, it should be rejected", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("172.31.0.9")}
		}, "advertiseAddress 172.31.0.9 lies inside the service network"},
		{"When the advertise address is in the cluster network, it should be rejected", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("10.132.0.9")}
		}, "advertiseAddress 10.132.0.9 lies inside the cluster network"},
		{"When the default advertise address is in the service network, it should be rejected", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.ServiceNetwork[0].CIDR = *ipnet.MustParseCIDR("172.20.0.0/16")
		}, "advertiseAddress 172.20.0.1 lies inside the service network"},
		{"When a signing key is set without an issuer URL, it should be rejected", func(hc *hyperv1.HostedCluster) {
			hc.Spec.ServiceAccountSigningKey = &corev1.LocalObjectReference{Name: "key"}
		}, "spec.serviceAccountSigningKey needs spec.issuerURL"},
		{"When a signing key is set with an issuer URL, it should be accepted", func(hc *hyperv1.HostedCluster) {
			hc.Spec.ServiceAccountSigningKey, hc.Spec.IssuerURL = &corev1.LocalObjectReference{Name: "key"}, "https://issuer.example"
		}, ""},
		{"When the cluster ID is a UUID, it should be accepted", func(hc *hyperv1.HostedCluster) {
			hc.Spec.ClusterID = "0f8fad5b-d9cb-469f-a165-70867728950e"
		}, ""},
		{"When a published address is in the service network, it should be rejected", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Services[0].ServicePublishingStrategy.NodePort.Address = "172.31.0.9"
		}, "the address 172.31.0.9 of APIServer lies inside the service network"},
		{"When a published address is a hostname, it should be accepted", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Services[0].ServicePublishingStrategy.NodePort.Address = "api.example"
		}, ""},
		{"When a NodePort service has allowed CIDR blocks, it should be rejected", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AllowedCIDRBlocks: []hyperv1.CIDRBlock{"203.0.113.0/24"}}
		}, "allowedCIDRBlocks cannot be enforced while the APIServer is published by NodePort"},
		{"When a LoadBalancer service has allowed CIDR blocks, it should be accepted", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AllowedCIDRBlocks: []hyperv1.CIDRBlock{"203.0.113.0/24"}}
			hc.Spec.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{
				Type: hyperv1.LoadBalancer, LoadBalancer: &hyperv1.LoadBalancerPublishingStrategy{},
			}
		}, ""},
		{"When a service uses a Route and there is no Route API, it should suggest other strategies", func(hc *hyperv1.HostedCluster) {
			hc.Spec.Services[1].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
		}, "use NodePort or LoadBalancer"},
		{"When two services have the same hostname, it should be rejected", func(hc *hyperv1.HostedCluster) {
			lb := hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer, LoadBalancer: &hyperv1.LoadBalancerPublishingStrategy{Hostname: "x.example"}}
			hc.Spec.Services[0].ServicePublishingStrategy, hc.Spec.Services[1].ServicePublishingStrategy = lb, lb
		}, "have the same hostname x.example"},
		{"When the name of the hosted namespace is too long, it should report by how much", func(hc *hyperv1.HostedCluster) {
			hc.Name = strings.Repeat("a", 55)
		}, "1 characters too long"},
		{"When the name of the hosted namespace has the maximum length, it should be accepted", func(hc *hyperv1.HostedCluster) {
			hc.Name = strings.Repeat("a", 54)
		}, ""},
		{"When the cluster ID is not a UUID, it should be rejected", func(hc *hyperv1.HostedCluster) { hc.Spec.ClusterID = "demo" }, "is not a UUID"},
		{"When the platform block is missing, it should report what to set", func(hc *hyperv1.HostedCluster) { hc.Spec.Platform.MAAS = nil }, "spec.platform.maas is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, d, hc := NewWithT(t), newDesk(), fixture.HostedCluster("clusters")
			tc.mutate(hc)
			scope := newScope(hc)
			scope.Platform, _ = d.Platforms.For(hyperv1.MAASPlatform)
			err := d.validate(scope)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestReadBy(t *testing.T) {
	t.Run("When a cluster references objects, it should list all of them", func(t *testing.T) {
		hc := fixture.HostedCluster("clusters")
		hc.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "audit"}
		hc.Spec.ServiceAccountSigningKey = &corev1.LocalObjectReference{Name: "sa"}
		hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{
			ActiveKey: corev1.LocalObjectReference{Name: "active"}, BackupKey: &corev1.LocalObjectReference{Name: "backup"}}}
		r := &Reconciler{Platforms: fixture.Platforms(nil)}
		NewWithT(t).Expect(r.readBy(hc)).To(ConsistOf(fixture.PullSecret, fixture.SSHKey, fixture.TrustBundle, fixture.Credentials,
			"audit", "sa", "active", "backup"))
		hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.KMSPlugin,
			Plugin: &hyperv1.KMSPluginSpec{Credentials: &corev1.LocalObjectReference{Name: "vault"}}}}
		NewWithT(t).Expect(r.readBy(hc)).To(ContainElement("vault"))
	})
}

func TestEmptyReferences(t *testing.T) {
	t.Run("When optional references have empty names, the control plane should get none of them", func(t *testing.T) {
		g, hc, nothing := NewWithT(t), fixture.HostedCluster("clusters"), &corev1.LocalObjectReference{}
		hc.Spec.AdditionalTrustBundle, hc.Spec.AuditWebhook, hc.Spec.ServiceAccountSigningKey = nothing, nothing, nothing
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(newScope(hc).shapeControlPlane(hcp)).To(Succeed())
		g.Expect(hcp.Spec.AdditionalTrustBundle).To(BeNil(), "nodes would wait for it for ever")
		g.Expect(hcp.Spec.AuditWebhook).To(BeNil())
		g.Expect(hcp.Spec.ServiceAccountSigningKey).To(BeNil())
		g.Expect(validateIdentity(hc)).To(Succeed(), "no key needs no issuer")
	})
}
