// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestPodRanges(t *testing.T) {
	pool := func(name, cluster string, edit func(*hyperv1.NodePoolSpec)) *hyperv1.NodePool {
		p := fixture.NodePool("clusters")
		p.Name, p.Spec.ClusterName = name, cluster
		edit(&p.Spec)
		return p
	}
	replicas := func(n int32) func(*hyperv1.NodePoolSpec) {
		return func(spec *hyperv1.NodePoolSpec) { spec.Replicas = ptr.To(n) }
	}
	scaled := func(spec *hyperv1.NodePoolSpec) {
		spec.Replicas, spec.AutoScaling = nil, &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](1), Max: 3}
	}
	for name, tc := range map[string]struct {
		others []client.Object
		plugin hyperv1.NetworkType
		says   string
	}{
		"two nodes have ranges":                         {nil, "", ""},
		"two pools have ranges":                         {[]client.Object{pool("b", fixture.ClusterName, replicas(2))}, "", ""},
		"pools of another cluster do not count":         {[]client.Object{pool("b", "other", replicas(9))}, "", ""},
		"there is one node more than ranges":            {[]client.Object{pool("b", fixture.ClusterName, replicas(3))}, "", "up to 5 nodes"},
		"the autoscaler may exceed the ranges":          {[]client.Object{pool("b", fixture.ClusterName, scaled)}, "", "up to 5 nodes"},
		"the user's plugin gives no ranges":             {[]client.Object{pool("b", fixture.ClusterName, replicas(9))}, hyperv1.Other, ""},
		"a pool that is scaled to zero needs no ranges": {[]client.Object{pool("b", fixture.ClusterName, replicas(0))}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s, kind := NewWithT(t), pass(), hyperv1.NodePoolPodRangesSufficientConditionType
			s.HC.Spec.Networking.NetworkType = tc.plugin
			s.HC.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: *ipnet.MustParseCIDR("10.0.0.0/22"), HostPrefix: 24}}
			r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(append(tc.others, s.Pool)...).Build()}
			_, err := r.reportPodRanges(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			if tc.says == "" {
				g.Expect(s.Conditions).To(BeEmpty())
				g.Expect(s.Cleared).To(ConsistOf(kind))
				return
			}
			g.Expect(s.says(kind)).To(And(HavePrefix("False/PodRangesExhausted: "), ContainSubstring(tc.says),
				ContainSubstring("10.0.0.0/22 (a /24 for each node) has ranges for 4")))
		})
	}
}

func TestSiblings(t *testing.T) {
	g, first := NewWithT(t), fixture.NodePool("clusters")
	second, other := first.DeepCopy(), first.DeepCopy()
	second.Name, other.Name, other.Spec.ClusterName = "second", "other", "another"
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(first, second, other).Build()}
	requests := r.siblings(t.Context(), first)
	g.Expect(requests).To(HaveLen(1))
	g.Expect(requests[0].Name).To(Equal("second"))
}
