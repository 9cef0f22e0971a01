// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"testing"

	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/managementnetwork"
	"github.com/openshift/hypershift/support/tenantlimits"
)

// TestPoliciesSelectByReservedLabels checks that NetworkPolicies select pods only by labels that a tenant cannot set.
// Otherwise a tenant could bypass a policy.
func TestPoliciesSelectByReservedLabels(t *testing.T) {
	for _, platform := range []hyperv1.PlatformType{hyperv1.KubevirtPlatform, hyperv1.MAASPlatform, hyperv1.AWSPlatform} {
		t.Run("When the platform is "+string(platform)+", policies should select by reserved labels", func(t *testing.T) {
			g := NewWithT(t)
			keys := map[string]string{}
			for _, p := range everyPolicy(t, platform) {
				spec := p.spec()
				selectors := []*metav1.LabelSelector{&spec.PodSelector}
				for _, rule := range spec.Ingress {
					selectors = append(selectors, podsOf(rule.From)...)
				}
				for _, rule := range spec.Egress {
					selectors = append(selectors, podsOf(rule.To)...)
				}
				for _, selector := range selectors {
					for key := range selector.MatchLabels {
						keys[key] = p.name
					}
					for _, requirement := range selector.MatchExpressions {
						keys[requirement.Key] = p.name
					}
				}
			}
			g.Expect(keys).NotTo(BeEmpty())
			for key, policy := range keys {
				g.Expect(tenantlimits.ReservedLabel(key)).To(BeTrue(), "policy %s selects by %s", policy, key)
			}
		})
	}
}

// everyPolicy returns the policies of a namespace whose services are published in every way.
func everyPolicy(t *testing.T, platform hyperv1.PlatformType) []policy {
	t.Helper()
	var all []policy
	for _, image := range []string{fixture.ReleaseImage, fixture.OCPImage} {
		for _, kind := range []hyperv1.PublishingStrategyType{hyperv1.NodePort, hyperv1.LoadBalancer, hyperv1.Route} {
			hc := fixture.HostedCluster("clusters")
			hc.Spec.Platform.Type = platform
			for i := range hc.Spec.Services {
				hc.Spec.Services[i].ServicePublishingStrategy.Type = kind
			}
			s := &cluster.Scope{HC: hc, Release: fixture.Payloads()[image]}
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
			outgoing, err := NetworkPolicies{Client: c, LiveReader: c, Able: able(false)}.egressPolicies(t.Context(), s, &managementnetwork.Addresses{})
			if err != nil {
				t.Fatal(err)
			}
			all = append(append(all, ingressPolicies(s)...), outgoing...)
		}
	}
	return all
}

// podsOf returns the selectors of pods in the same namespace.
func podsOf(peers []networkingv1.NetworkPolicyPeer) []*metav1.LabelSelector {
	var selectors []*metav1.LabelSelector
	for _, peer := range peers {
		if peer.PodSelector != nil && peer.NamespaceSelector == nil {
			selectors = append(selectors, peer.PodSelector)
		}
	}
	return selectors
}
