// SPDX-License-Identifier: Apache-2.0

package guestcomponents

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

func TestDNSAddresses(t *testing.T) {
	hcp := fixture.GuestControlPlane()
	t.Run("When there are two service networks, DNS should get the tenth address of each", func(t *testing.T) {
		g := NewWithT(t)
		hcp.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{
			{CIDR: *ipnet.MustParseCIDR("172.31.0.0/16")}, {CIDR: *ipnet.MustParseCIDR("fd00:10::/112")},
		}
		g.Expect(dnsAddresses(hcp)).To(Equal([]string{"172.31.0.10", "fd00:10::a"}))
	})
	t.Run("When there is no service network, it should return an error", func(t *testing.T) {
		hcp.Spec.Networking.ServiceNetwork = nil
		_, err := dnsAddresses(hcp)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("has no service network")))
	})
}

func TestDNSReplicas(t *testing.T) {
	node := func(taints ...string) corev1.Node {
		n := corev1.Node{}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		return n
	}
	preferred := node("dedicated")
	preferred.Spec.Taints[0].Effect = corev1.TaintEffectPreferNoSchedule
	cordoned, dead := node(corev1.TaintNodeUnschedulable), node(corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady)
	for name, tc := range map[string]struct {
		policy hyperv1.AvailabilityPolicy
		nodes  []corev1.Node
		want   int32
	}{
		"there is no node, it should be one":                                   {hyperv1.HighlyAvailable, nil, 1},
		"there is one node, it should be one":                                  {hyperv1.HighlyAvailable, []corev1.Node{node()}, 1},
		"there are two nodes, it should be two":                                {hyperv1.HighlyAvailable, []corev1.Node{node(), node()}, 2},
		"there are three nodes, it should be two":                              {hyperv1.HighlyAvailable, []corev1.Node{node(), node(), node()}, 2},
		"one replica is requested, it should be one":                           {hyperv1.SingleReplica, []corev1.Node{node(), node()}, 1},
		"one of two nodes is cordoned, it should be two":                       {hyperv1.HighlyAvailable, []corev1.Node{node(), cordoned}, 2},
		"one of two nodes is unreachable, it should be two":                    {hyperv1.HighlyAvailable, []corev1.Node{node(), dead}, 2},
		"one of two nodes has another taint, it should be one":                 {hyperv1.HighlyAvailable, []corev1.Node{node(), node("dedicated")}, 1},
		"one of two nodes is cordoned and has another taint, it should be one": {hyperv1.HighlyAvailable, []corev1.Node{node(), node(corev1.TaintNodeUnschedulable, "dedicated")}, 1},
		"one of two nodes has a PreferNoSchedule taint, it should be two":      {hyperv1.HighlyAvailable, []corev1.Node{node(), preferred}, 2},
		"one of two nodes has the CriticalAddonsOnly taint, it should be two":  {hyperv1.HighlyAvailable, []corev1.Node{node(), node(criticalOnly)}, 2},
	} {
		t.Run("When "+name, func(t *testing.T) {
			hcp := fixture.GuestControlPlane()
			hcp.Spec.InfrastructureAvailabilityPolicy = tc.policy
			NewWithT(t).Expect(dnsReplicas(&component.Scope{HCP: hcp, GuestNodes: tc.nodes})).To(Equal(tc.want))
		})
	}
}
