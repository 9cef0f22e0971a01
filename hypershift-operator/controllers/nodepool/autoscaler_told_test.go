// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// scaling returns a scope of an autoscaled pool whose next machine's capacity is known.
func scaling() *reconciliation {
	s := configured(func(*reconciliation) {})
	s.Pool.Spec.Replicas, s.Pool.Spec.AutoScaling = nil, &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](1), Max: 3}
	s.capacity = platform.MachineCapacity{Zone: "az1", Resources: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("120G"),
	}}
	return s
}

func TestTellAutoscaler(t *testing.T) {
	const labels = "hypershift.openshift.io/nodePool=demo,kubernetes.io/arch=amd64,topology.kubernetes.io/zone=az1"
	whole := map[string]string{
		"cluster-api-autoscaler-node-group-min-size": "1", "cluster-api-autoscaler-node-group-max-size": "3",
		"autoscaling-options-maxnodeprovisiontime": "3h45m0s",
		"cpu": "8", "memory": "15772Mi", "ephemeral-disk": "97274Mi", "maxPods": "110", "labels": labels,
	}
	for name, test := range map[string]struct {
		change func(*reconciliation)
		differ map[string]string // an empty value means that the annotation is absent
	}{
		"When everything is known, it should set all annotations": {func(*reconciliation) {}, nil},
		"When the cluster sets maxNodeProvisionTime, it should not set it on the NodePool": {
			func(s *reconciliation) { s.HC.Spec.Autoscaling.MaxNodeProvisionTime = "90m" }, map[string]string{"autoscaling-options-maxnodeprovisiontime": ""}},
		"When the disk size is unknown, it should not set the annotation": {
			func(s *reconciliation) { delete(s.capacity.Resources, corev1.ResourceEphemeralStorage) }, map[string]string{"ephemeral-disk": ""}},
		"When the memory is unknown, it should set no capacity annotations": {
			func(s *reconciliation) { delete(s.capacity.Resources, corev1.ResourceMemory) }, map[string]string{"cpu": "", "memory": "", "ephemeral-disk": "", "maxPods": "", "labels": ""}},
		"When the number of cores is unknown, it should set no capacity annotations": {
			func(s *reconciliation) { delete(s.capacity.Resources, corev1.ResourceCPU) }, map[string]string{"cpu": "", "memory": "", "ephemeral-disk": "", "maxPods": "", "labels": ""}},
		"When the zone is unknown, it should leave the zone out of the labels": {
			func(s *reconciliation) { s.capacity.Zone = "" }, map[string]string{"labels": "hypershift.openshift.io/nodePool=demo,kubernetes.io/arch=amd64"}},
		"When the user sets an empty zone label, it should leave the zone out of the labels": {
			func(s *reconciliation) { s.Pool.Spec.NodeLabels = map[string]string{corev1.LabelTopologyZone: ""} }, map[string]string{"labels": "hypershift.openshift.io/nodePool=demo,kubernetes.io/arch=amd64"}},
		"When the user sets node labels, it should add them to the labels, even with an empty value": {
			func(s *reconciliation) { s.Pool.Spec.NodeLabels = map[string]string{"a": "", "rack": "r1"} }, map[string]string{"labels": "a=,hypershift.openshift.io/nodePool=demo,kubernetes.io/arch=amd64,rack=r1,topology.kubernetes.io/zone=az1"}},
		"When a node label's value contains a second label, it should leave out both": {func(s *reconciliation) {
			s.Pool.Spec.NodeLabels = map[string]string{"rack": "r1,node-role.kubernetes.io/control-plane="}
			s.Pool.Spec.Taints = []hyperv1.Taint{{Key: "own", Effect: corev1.TaintEffectNoExecute}}
		}, map[string]string{
			"labels": "hypershift.openshift.io/nodePool=demo,kubernetes.io/arch=amd64,topology.kubernetes.io/zone=az1",
			"taints": "own:NoExecute",
		}},
		"When a taint's value contains a second taint, it should set neither labels nor taints": {func(s *reconciliation) {
			s.Pool.Spec.Taints = []hyperv1.Taint{{Key: "own", Value: "a:NoSchedule,b=c", Effect: corev1.TaintEffectNoExecute}}
		}, map[string]string{"labels": ""}},
		"When the zone's name contains a label, it should leave the zone out of the labels": {
			func(s *reconciliation) { s.capacity.Zone = "az1,rack=r2" }, map[string]string{"labels": "hypershift.openshift.io/nodePool=demo,kubernetes.io/arch=amd64"}},
		"When machines have another architecture, it should set it in the labels": {
			func(s *reconciliation) { s.Pool.Spec.Arch = "arm64" }, map[string]string{"labels": "hypershift.openshift.io/nodePool=demo,kubernetes.io/arch=arm64,topology.kubernetes.io/zone=az1"}},
		"When nodes have taints, it should set them in their order": {func(s *reconciliation) {
			s.Pool.Spec.Taints = []hyperv1.Taint{{Key: "own", Effect: corev1.TaintEffectNoExecute}, {Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
		}, map[string]string{"taints": "own:NoExecute,gpu=yes:NoSchedule"}},
		"When the maximum is below the minimum, it should use the minimum for both": {
			func(s *reconciliation) { s.Pool.Spec.AutoScaling.Min = ptr.To[int32](4) }, map[string]string{"cluster-api-autoscaler-node-group-min-size": "4", "cluster-api-autoscaler-node-group-max-size": "4"}},
		"When the minimum is not set, it should use one": {func(s *reconciliation) { s.Pool.Spec.AutoScaling.Min = nil }, nil},
		"When the minimum is zero on a platform that cannot scale from zero, it should use one": {func(s *reconciliation) {
			s.Pool.Spec.AutoScaling, s.Pool.Spec.Platform.Type = &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](0), Max: 0}, hyperv1.KubevirtPlatform
		}, map[string]string{"cluster-api-autoscaler-node-group-max-size": "1"}},
		"When the user sets replicas, it should set only annotations that stop the autoscaler": {func(s *reconciliation) { s.Pool.Spec.AutoScaling = nil }, map[string]string{
			"cluster-api-autoscaler-node-group-min-size": "0", "cluster-api-autoscaler-node-group-max-size": "0", "autoscaling-options-maxnodeprovisiontime": "",
			"cpu": "", "memory": "", "ephemeral-disk": "", "maxPods": "", "labels": "",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{}
			for key, value := range whole {
				want[key] = value
			}
			for key, value := range test.differ {
				if want[key] = value; value == "" {
					delete(want, key)
				}
			}
			s := scaling()
			md := &clusterv1.MachineDeployment{}
			s.tellAutoscaler(md)
			md.Annotations[autoscalerTaints] = "of-yesterday:NoSchedule"
			md.Annotations["somebody.example/else"] = "stays"
			test.change(s)
			s.tellAutoscaler(md)
			NewWithT(t).Expect(cmp.Diff(want, autoscalers(md))).To(BeEmpty(), "-want +got")
			NewWithT(t).Expect(md.Annotations).To(HaveKeyWithValue("somebody.example/else", "stays"))
		})
	}
}

func TestBoundsInPlace(t *testing.T) {
	const target, current, stopped = hyperv1.NodePoolTargetConfigVersionAnnotation, hyperv1.NodePoolCurrentConfigVersionAnnotation, hyperv1.NodePoolUpgradeInProgressFalseAnnotation
	updating := map[string]string{target: "b", current: "a"}
	halted := map[string]string{target: "b", current: "a", stopped: "Node a went back"}
	for name, test := range map[string]struct {
		told             map[string]string
		replicas         *int32
		minimum, maximum int32
		want             string
	}{
		"When all nodes have the configuration, it should use the bounds of the NodePool":         {map[string]string{target: "b", current: "b"}, ptr.To[int32](2), 0, 3, "0 to 3"},
		"When nodes are being updated, it should allow only the current number":                   {updating, ptr.To[int32](2), 0, 3, "2 to 2"},
		"When a single node is being updated, it should allow only that node":                     {updating, ptr.To[int32](1), 0, 3, "1 to 1"},
		"When there are more nodes than the maximum during an update, it should use the maximum":  {updating, ptr.To[int32](5), 0, 3, "3 to 3"},
		"When there are fewer nodes than the minimum during an update, it should use the minimum": {updating, ptr.To[int32](1), 2, 3, "2 to 2"},
		"When there are no nodes during an update, it should use the bounds of the NodePool":      {updating, ptr.To[int32](0), 0, 3, "0 to 3"},
		"When replicas is not set during an update, it should use the bounds of the NodePool":     {updating, nil, 0, 3, "0 to 3"},
		"When the update stopped at a node, it should allow more nodes":                           {halted, ptr.To[int32](2), 0, 3, "2 to 3"},
		"When the update stopped and the maximum is reached, it should not allow more nodes":      {halted, ptr.To[int32](3), 0, 3, "3 to 3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scaling()
			s.Pool.Spec.AutoScaling = &hyperv1.NodePoolAutoScaling{Min: &test.minimum, Max: test.maximum}
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Annotations: test.told}, Spec: clusterv1.MachineSetSpec{Replicas: test.replicas}}
			lowest, highest := autoscalerBounds(s.Pool, set)
			NewWithT(t).Expect(fmt.Sprintf("%s to %s", lowest, highest)).To(Equal(test.want))
		})
	}
}

func TestMebibytes(t *testing.T) {
	for bytes, want := range map[int64]string{-1: "0", 0: "0", 1<<20 - 1: "0", 1 << 20: "1Mi", 3<<20 - 1: "2Mi"} {
		NewWithT(t).Expect(mebibytes(bytes)).To(Equal(want), "%d bytes", bytes)
	}
}
