// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/platforms"
)

// served are the components of a control plane that machines connect to, by their label app.
var served = []string{"kube-apiserver", "oauth-openshift", "ignition-server", "ignition-server-proxy", "konnectivity-server"}

// machinePods returns the labels of pods in the hosted namespace that run machines; empty if the platform has none.
func machinePods(s *cluster.Scope) map[string]string {
	traits, _ := platforms.Of(s.HC.Spec.Platform.Type)
	return traits.MachinePods
}

// inside excludes machine pods from a selector. Policies that let the control plane's pods reach each other must not
// apply to guest workloads.
func inside(s *cluster.Scope, pods metav1.LabelSelector) metav1.LabelSelector {
	labels := machinePods(s)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pods.MatchExpressions = append(pods.MatchExpressions, not(key, labels[key]).MatchExpressions...)
	}
	return pods
}

// machinePolicies returns the policies that give pods of virtual machines the network access of any machine. Such pods
// reach the internet, each other and published services, and accept all incoming traffic. The policy has the same name
// as in upstream HyperShift.
func machinePolicies(s *cluster.Scope, dns, outside networkingv1.NetworkPolicyEgressRule) []policy {
	labels := machinePods(s)
	if len(labels) == 0 {
		return nil
	}
	machines := metav1.LabelSelector{MatchLabels: labels}
	published := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: served}}}
	peers := append(namespacesOf("ingress"), networkingv1.NetworkPolicyPeer{PodSelector: &machines}, networkingv1.NetworkPolicyPeer{PodSelector: &published})
	return []policy{{name: "virt-launcher", pods: machines, open: true, egress: []networkingv1.NetworkPolicyEgressRule{{To: peers}, dns, outside}}}
}
