// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/health"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/support/nodelabels"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/syntax/autoscaler"
)

// Annotations that the cluster autoscaler reads from a MachineDeployment or MachineSet.
const (
	autoscalerMax = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
	autoscalerMin = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
	// autoscalerPatience sets how long the autoscaler waits until a machine of the pool becomes a node.
	autoscalerPatience = "cluster.x-k8s.io/autoscaling-options-maxnodeprovisiontime"

	autoscalerCPU    = "capacity.cluster-autoscaler.kubernetes.io/cpu"
	autoscalerMemory = "capacity.cluster-autoscaler.kubernetes.io/memory"
	autoscalerDisk   = "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk"
	autoscalerPods   = "capacity.cluster-autoscaler.kubernetes.io/maxPods"
	autoscalerLabels = "capacity.cluster-autoscaler.kubernetes.io/labels"
	autoscalerTaints = "capacity.cluster-autoscaler.kubernetes.io/taints"
)

// These values are the part of a machine that is not available to pods, whatever its distribution. The kernel maps
// each page of 4096 bytes with a structure of 64 bytes. Firmware and kernel use some of the rest. The kubelet evicts
// pods at 100 MiB of free memory and at 10 % of free disk. The file system reserves another 5 % of the disk.
const (
	pageTablesShare = 64
	kernelMemory    = 256 << 20
	evictionMemory  = 100 << 20
	diskPercent     = 85
)

// tellAutoscaler annotates a MachineDeployment or MachineSet with what the autoscaler must know about the pool, even if
// the pool has no machine. It removes annotations that no longer apply.
func (s *reconciliation) tellAutoscaler(obj metav1.Object) {
	minimum, maximum := autoscalerBounds(s.Pool, obj)
	scope.Annotate(obj, autoscalerMin, minimum)
	scope.Annotate(obj, autoscalerMax, maximum)
	told := map[string]string{}
	if s.Pool.Spec.AutoScaling != nil {
		maps.Copy(told, s.roomOfNode())
		if s.HC.Spec.Autoscaling.MaxNodeProvisionTime == "" {
			told[autoscalerPatience] = health.Check{Scope: s.Scope}.NodeStartup().String()
		}
	}
	annotations := obj.GetAnnotations()
	for _, key := range []string{autoscalerPatience, autoscalerCPU, autoscalerMemory, autoscalerDisk, autoscalerPods, autoscalerLabels, autoscalerTaints} {
		delete(annotations, key)
		if told[key] != "" {
			annotations[key] = told[key]
		}
	}
}

// roomOfNode returns the capacity that the pool's next node offers to pods, and its labels and taints. The autoscaler
// treats it as the allocatable capacity. If it were too high, the autoscaler would repeatedly add machines for a pod
// that does not fit.
func (s *reconciliation) roomOfNode() map[string]string {
	have, keeps := s.capacity.Resources, s.Distribution().NodeReserves
	if have.Cpu().IsZero() || have.Memory().IsZero() {
		return nil
	}
	cores, memory := have.Cpu().DeepCopy(), have.Memory().Value()
	cores.Sub(*keeps.Cpu())
	memory -= memory/pageTablesShare + kernelMemory + evictionMemory + keeps.Memory().Value()
	room := map[string]string{
		autoscalerCPU:    cores.String(),
		autoscalerMemory: mebibytes(memory),
		autoscalerPods:   strconv.Itoa(int(s.Distribution().MaxPods)),
	}
	// On an error, both stay empty, and the autoscaling phase reports the error.
	room[autoscalerLabels], room[autoscalerTaints], _ = s.marksOfNode()
	if disk := have.StorageEphemeral().Value(); disk > 0 {
		room[autoscalerDisk] = mebibytes(disk / 100 * diskPercent)
	}
	return room
}

// mebibytes formats bytes in a human-readable binary unit, rounded down to a whole MiB.
func mebibytes(bytes int64) string {
	return resource.NewQuantity(max(0, bytes)&^(1<<20-1), resource.BinarySI).String()
}

// marksOfNode returns the labels and taints of the pool's next node, as the autoscaler reads them. On an error, both are
// empty.
func (s *reconciliation) marksOfNode() (labels, taints string, err error) {
	labels, err = autoscaler.Labels("spec.nodeLabels", s.nodeLabels())
	if err == nil {
		taints, err = autoscaler.Taints("spec.taints", s.Pool.Spec.Taints)
	}
	if err != nil {
		return "", "", err
	}
	return labels, taints, nil
}

// nodeLabels returns the labels that the pool's nodes are known to get. A zone whose name cannot be a label is left
// out, because the node does not get it either.
func (s *reconciliation) nodeLabels() map[string]string {
	labels := map[string]string{
		hyperv1.NodePoolLabel:  s.Pool.Name,
		corev1.LabelArchStable: cmp.Or(s.Pool.Spec.Arch, hyperv1.ArchitectureAMD64),
	}
	if autoscaler.ValidValue(s.capacity.Zone) {
		labels[corev1.LabelTopologyZone] = s.capacity.Zone
	}
	maps.Copy(labels, nodelabels.Valid(s.Pool.Spec.NodeLabels))
	maps.DeleteFunc(labels, func(key, value string) bool { return key == corev1.LabelTopologyZone && value == "" })
	return labels
}

// replicas returns the number of machines of a pool. With autoscaling, the autoscaler sets the number within the
// bounds.
func replicas(pool *hyperv1.NodePool, current *int32) *int32 {
	if pool.Spec.AutoScaling == nil {
		return ptr.To(ptr.Deref(pool.Spec.Replicas, 0))
	}
	minimum, maximum := bounds(pool)
	if current == nil {
		return ptr.To(minimum)
	}
	return ptr.To(max(minimum, min(*current, maximum)))
}

// scalingMin returns the minimum number of machines in the spec; 1 if it is unset.
func scalingMin(pool *hyperv1.NodePool) int32 {
	return ptr.Deref(pool.Spec.AutoScaling.Min, 1)
}

// bounds returns the bounds of the autoscaler. The minimum is 1 on a platform that cannot describe a machine before it
// exists.
func bounds(pool *hyperv1.NodePool) (minimum, maximum int32) {
	minimum, maximum = scalingMin(pool), pool.Spec.AutoScaling.Max
	if traits, _ := platforms.Of(pool.Spec.Platform.Type); minimum == 0 && !traits.ScalesFromZero {
		minimum = 1
	}
	return minimum, max(minimum, maximum)
}

// autoscalerBounds returns the bounds as annotations. Both are zero to disable the autoscaler for the pool.
func autoscalerBounds(pool *hyperv1.NodePool, obj metav1.Object) (minimum, maximum string) {
	if pool.Spec.AutoScaling == nil {
		return "0", "0"
	}
	lowest, highest := bounds(pool)
	if set, ok := obj.(*clusterv1.MachineSet); ok {
		lowest, highest = boundsInPlace(set, lowest, highest)
	}
	return strconv.Itoa(int(lowest)), strconv.Itoa(int(highest))
}

// boundsInPlace prevents the autoscaler from scaling while nodes are updated in place. A node that was drained for the
// update looks unused, and its pods look as if they needed a machine. If the update stopped at a node, pending pods
// would wait long, so the autoscaler may add machines for them.
func boundsInPlace(set *clusterv1.MachineSet, minimum, maximum int32) (lowest, highest int32) {
	told := set.Annotations
	if told[hyperv1.NodePoolTargetConfigVersionAnnotation] == told[hyperv1.NodePoolCurrentConfigVersionAnnotation] {
		return minimum, maximum
	}
	have := max(minimum, min(ptr.Deref(set.Spec.Replicas, 0), maximum))
	if have == 0 || told[hyperv1.NodePoolUpgradeInProgressFalseAnnotation] != "" {
		return have, maximum
	}
	return have, have
}
