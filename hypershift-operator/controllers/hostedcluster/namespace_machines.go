// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/support/platforms"
)

// served are the parts of a control plane that machines talk to, by their label app.
var served = []string{"kube-apiserver", "oauth-openshift", "ignition-server", "ignition-server-proxy", "konnectivity-server"}

// machinePods are the labels of pods in the hosted namespace that are machines; empty where there are none.
func (s *scope) machinePods() map[string]string {
	traits, _ := platforms.Of(s.hc.Spec.Platform.Type)
	return traits.MachinePods
}

// inside are those of some pods that are no machines: what lets the control plane's pods reach one another is not for what a guest runs.
func (s *scope) inside(pods metav1.LabelSelector) metav1.LabelSelector {
	labels := s.machinePods()
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pods.MatchExpressions = append(pods.MatchExpressions, not(key, labels[key]).MatchExpressions...)
	}
	return pods
}

// machinePolicies let pods that are machines do what machines anywhere do: reach the world, one another and what is published, and be reached
// by everybody. The name is the compatible product's.
func (s *scope) machinePolicies(outside networkingv1.NetworkPolicyEgressRule) []policy {
	labels := s.machinePods()
	if len(labels) == 0 {
		return nil
	}
	machines := metav1.LabelSelector{MatchLabels: labels}
	published := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: served}}}
	peers := append(namespacesOf("ingress"), networkingv1.NetworkPolicyPeer{PodSelector: &machines}, networkingv1.NetworkPolicyPeer{PodSelector: &published})
	return []policy{{name: "virt-launcher", pods: machines, open: true, egress: []networkingv1.NetworkPolicyEgressRule{{To: peers}, dns(), outside}}}
}
