// SPDX-License-Identifier: Apache-2.0

package clusterautoscaler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

func TestFlags(t *testing.T) {
	cases := []struct {
		name string
		spec hyperv1.ClusterAutoscaling
		want component.Flags
	}{
		{"nothing", hyperv1.ClusterAutoscaling{}, component.Flags{
			"--expander=priority,least-waste", "--balancing-ignore-label=hypershift.openshift.io/nodePool", "--scale-down-enabled=true",
		}},
		{"scaling to ScaleUpOnly", hyperv1.ClusterAutoscaling{Scaling: hyperv1.ScaleUpOnly}, component.Flags{
			"--expander=priority,least-waste", "--balancing-ignore-label=hypershift.openshift.io/nodePool", "--scale-down-enabled=false",
		}},
		{"all fields", hyperv1.ClusterAutoscaling{
			Scaling: hyperv1.ScaleUpAndScaleDown,
			ScaleDown: &hyperv1.ScaleDownConfig{
				DelayAfterAddSeconds: ptr.To[int32](1), DelayAfterDeleteSeconds: ptr.To[int32](2), DelayAfterFailureSeconds: ptr.To[int32](3),
				UnneededDurationSeconds: ptr.To[int32](4), UtilizationThresholdPercent: ptr.To[int32](5),
			},
			BalancingIgnoredLabels: []string{"example.com/rack"}, MaxNodesTotal: ptr.To[int32](0), MaxPodGracePeriod: ptr.To[int32](7),
			MaxNodeProvisionTime: "90m", MaxFreeDifferenceRatioPercent: ptr.To[int32](100), PodPriorityThreshold: ptr.To[int32](-9),
			Expanders: []hyperv1.ExpanderString{hyperv1.LeastWasteExpander, hyperv1.RandomExpander},
		}, component.Flags{
			"--max-nodes-total=0", "--max-graceful-termination-sec=7", "--expendable-pods-priority-cutoff=-9", "--max-node-provision-time=90m",
			"--expander=least-waste,random",
			"--balancing-ignore-label=hypershift.openshift.io/nodePool", "--balancing-ignore-label=example.com/rack", "--max-free-difference-ratio=1.00",
			"--scale-down-enabled=true", "--scale-down-delay-after-add=1s", "--scale-down-delay-after-delete=2s", "--scale-down-delay-after-failure=3s",
			"--scale-down-unneeded-time=4s", "--scale-down-utilization-threshold=0.05",
		}},
	}
	for _, tc := range cases {
		t.Run("When the cluster sets "+tc.name+" it should set the matching flags", func(t *testing.T) {
			var got component.Flags
			setLimits(&got, tc.spec)
			setChoice(&got, tc.spec)
			setScaleDown(&got, tc.spec)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("flags differ (-want +got):\n%s", diff)
			}
		})
	}
}
