// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// TestInfraCluster checks the complete MaasCluster, and when it is created.
func TestInfraCluster(t *testing.T) {
	cluster := func(change func(*hyperv1.MAASPlatformSpec)) platform.Cluster {
		c := testCluster()
		c.ControlPlane = &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{ControlPlaneEndpoint: hyperv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}}}
		if change != nil {
			change(c.HostedCluster.Spec.Platform.MAAS)
		}
		return c
	}
	t.Run("When the API address is not known yet, it should create no MaasCluster", func(t *testing.T) {
		g, unknown := NewWithT(t), cluster(nil)
		unknown.ControlPlane.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{}
		g.Expect((&Platform{}).InfraCluster(unknown)).To(BeNil())
		g.Expect((&Platform{}).InfraCluster(testCluster())).To(BeNil())
	})
	plain := infrav1.MaasClusterSpec{DNSDomain: "maas", ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "10.0.0.1", Port: 6443}}
	chosen := plain
	chosen.DNSDomain, chosen.FailureDomains = "lab", []string{"az1", "az2"}
	kept := chosen
	kept.DNSDomain = "first"
	foreign := plain
	foreign.IdentityRef = &infrav1.IdentityReference{Name: mirrorName(testCluster().HostedCluster)}
	lab := func(spec *hyperv1.MAASPlatformSpec) {
		spec.DNSDomain, spec.FailureDomains = "lab", []hyperv1.MAASName{"az1", "az2"}
	}
	for _, tc := range []struct {
		name     string
		provider string
		change   func(*hyperv1.MAASPlatformSpec)
		live     infrav1.MaasClusterSpec
		want     infrav1.MaasClusterSpec
	}{
		{"When the cluster sets no DNS domain, it should use MAAS's default domain", "", nil, infrav1.MaasClusterSpec{}, plain},
		{"When the cluster sets a DNS domain and failure domains, it should use them", "", lab, infrav1.MaasClusterSpec{}, chosen},
		{"When the MaasCluster exists, it should keep its DNS domain and update the rest", "", lab, infrav1.MaasClusterSpec{DNSDomain: "first",
			ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "10.0.0.9", Port: 1}, FailureDomains: []string{"az9"}, IdentityRef: &infrav1.IdentityReference{Name: "old"}}, kept},
		{"When another provider runs, it should reference the credentials in identityRef", "upstream:1", nil, infrav1.MaasClusterSpec{}, foreign},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			object := New(Options{ProviderImage: tc.provider}).InfraCluster(cluster(tc.change))
			infra := object.Object.(*infrav1.MaasCluster)
			infra.Spec = tc.live
			g.Expect(object.Mutate()).To(Succeed())
			want := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo", Labels: map[string]string{"platform": "maas"},
				Annotations: map[string]string{infrav1.CustomDNSAnnotation: ""}}, Spec: tc.want}
			if diff := cmp.Diff(want, infra); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			g.Expect(object.MutateStatus).To(BeNil(), "the provider writes it")
		})
	}
}

// TestRestoredInfrastructure covers a MaasCluster that replaces a lost one.
func TestRestoredInfrastructure(t *testing.T) {
	restored := map[string]string{hyperv1.RestoredInfrastructureAnnotation: "lost-uid"}
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		live        metav1.ObjectMeta
		want        string
	}{
		{"When a restored cluster gets a new MaasCluster, it should record the UID of the lost one", restored, metav1.ObjectMeta{}, "lost-uid"},
		{"When the cluster is not restored, it should set no annotation", nil, metav1.ObjectMeta{}, ""},
		{"When the MaasCluster already exists, it should not record the UID of a lost one", restored, metav1.ObjectMeta{UID: "own"}, ""},
		{"When the HostedCluster's annotation is removed, it should keep the MaasCluster's annotation", nil,
			metav1.ObjectMeta{UID: "own", Annotations: map[string]string{infrav1.RestoredFromAnnotation: "lost-uid"}}, "lost-uid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Annotations: tc.annotations}}
			hc.Spec.Platform.MAAS = &hyperv1.MAASPlatformSpec{}
			hcp := &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{ControlPlaneEndpoint: hyperv1.APIEndpoint{Host: "api", Port: 6443}}}
			object := (&Platform{}).InfraCluster(platform.Cluster{HostedCluster: hc, ControlPlane: hcp, Namespace: "clusters-demo"})
			infra := object.Object.(*infrav1.MaasCluster)
			infra.UID, infra.Annotations = tc.live.UID, tc.live.Annotations
			g.Expect(object.Mutate()).To(Succeed())
			g.Expect(infra.Annotations[infrav1.RestoredFromAnnotation]).To(Equal(tc.want))
		})
	}
}
