// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/managementnetwork"
)

// TestMachinePods checks which policies select the pod of a virtual machine by its labels.
func TestMachinePods(t *testing.T) {
	virtualMachine := labels.Set{"kubevirt.io": "virt-launcher", hyperv1.NeedManagementKASAccessLabel: "true", "app": "kube-apiserver"}
	etcd := labels.Set{"app": "etcd"}
	selects := func(t *testing.T, selector metav1.LabelSelector, pod labels.Set) bool {
		t.Helper()
		matcher, err := metav1.LabelSelectorAsSelector(&selector)
		if err != nil {
			t.Fatal(err)
		}
		return matcher.Matches(pod)
	}
	for _, tc := range []struct {
		platform hyperv1.PlatformType
		egress   []string
		lets     bool
	}{
		{hyperv1.KubevirtPlatform, []string{"virt-launcher"}, false},
		{hyperv1.MAASPlatform, []string{"egress-own", "egress-outside", "egress-managers"}, true},
	} {
		t.Run("When the platform is "+string(tc.platform)+", policies should isolate virt-launcher pods only on KubeVirt", func(t *testing.T) {
			g := NewWithT(t)
			hc := fixture.HostedCluster("clusters")
			hc.Spec.Platform.Type = tc.platform
			s := &cluster.Scope{HC: hc, Release: fixture.Payloads()[fixture.ReleaseImage]}
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
			policies, err := NetworkPolicies{Client: c, LiveReader: c, Able: able(true)}.egressPolicies(t.Context(), s, &managementnetwork.Addresses{})
			g.Expect(err).NotTo(HaveOccurred())
			var about []string
			for _, p := range policies {
				if selects(t, p.pods, virtualMachine) {
					about = append(about, p.name)
				}
				if p.name == "virt-launcher" {
					g.Expect(p.spec().Ingress).To(Equal([]networkingv1.NetworkPolicyIngressRule{{}}), "everybody reaches a machine")
					for _, peer := range p.egress[0].To {
						g.Expect(peer.PodSelector == nil || !selects(t, *peer.PodSelector, etcd)).To(BeTrue(), "a machine has no business with etcd")
					}
				}
			}
			g.Expect(about).To(Equal(tc.egress))
			for _, p := range ingressPolicies(s) {
				if p.name == "same-namespace" {
					g.Expect(selects(t, *p.from[0].PodSelector, virtualMachine)).To(Equal(tc.lets))
					g.Expect(selects(t, *p.from[0].PodSelector, etcd)).To(BeTrue())
				}
			}
		})
	}
}

// TestDefaultLimits checks that the namespace limits containers, but not virtual machines that run as pods in it.
func TestDefaultLimits(t *testing.T) {
	for platform, limited := range map[hyperv1.PlatformType]bool{
		hyperv1.MAASPlatform: true, hyperv1.KubevirtPlatform: false,
	} {
		t.Run("When the platform is "+string(platform)+", only containers that are not machines should be limited", func(t *testing.T) {
			g := NewWithT(t)
			c := clustertest.NewServer().Direct
			_, err := LimitRange{Client: c}.Reconcile(t.Context(), clustertest.Scope(func(s *cluster.Scope) {
				s.HC.Spec.Platform.Type = platform
			}))
			g.Expect(err).NotTo(HaveOccurred())
			ranges := &corev1.LimitRangeList{}
			g.Expect(c.List(t.Context(), ranges)).To(Succeed())
			g.Expect(ranges.Items).To(HaveLen(1))
			item := ranges.Items[0].Spec.Limits[0]
			g.Expect(item.DefaultRequest).NotTo(BeEmpty())
			g.Expect(len(item.Default) > 0).To(Equal(limited))
		})
	}
}
