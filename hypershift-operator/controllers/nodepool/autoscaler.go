// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/platforms"
)

// What the cluster autoscaler reads from a MachineDeployment or MachineSet.
const (
	autoscalerMax = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
	autoscalerMin = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
	// autoscalerPatience is how long it lets a machine of the pool come up.
	autoscalerPatience = "cluster.x-k8s.io/autoscaling-options-maxnodeprovisiontime"

	autoscalerCPU    = "capacity.cluster-autoscaler.kubernetes.io/cpu"
	autoscalerMemory = "capacity.cluster-autoscaler.kubernetes.io/memory"
	autoscalerDisk   = "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk"
	autoscalerPods   = "capacity.cluster-autoscaler.kubernetes.io/maxPods"
	autoscalerLabels = "capacity.cluster-autoscaler.kubernetes.io/labels"
	autoscalerTaints = "capacity.cluster-autoscaler.kubernetes.io/taints"
)

// What pods don't get of a machine, whatever its distribution. The kernel maps each page of 4096 bytes with a structure of 64, firmware
// and kernel keep some of the rest, and the kubelet evicts pods at 100 MiB of free memory and at 10 % of free disk, of which the file
// system keeps 5 % for itself.
const (
	pageTablesShare = 64
	kernelMemory    = 256 << 20
	evictionMemory  = 100 << 20
	diskPercent     = 85
)

// tellAutoscaler annotates a MachineDeployment or MachineSet with all that the autoscaler must know of the pool, also before there is a
// machine. What does not hold any more goes.
func (s *scope) tellAutoscaler(obj metav1.Object) {
	minimum, maximum := autoscalerBounds(s.pool, obj)
	annotate(obj, autoscalerMin, minimum)
	annotate(obj, autoscalerMax, maximum)
	told := map[string]string{}
	if s.pool.Spec.AutoScaling != nil {
		maps.Copy(told, s.roomOfNode())
		if s.hc.Spec.Autoscaling.MaxNodeProvisionTime == "" {
			told[autoscalerPatience] = s.nodeStartup().String()
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

// roomOfNode is what pods get of the pool's next node, and which of them it takes. The autoscaler takes it for what is allocatable: were it
// more than that, a machine would be installed in vain for a pod that just does not fit, over and over.
func (s *scope) roomOfNode() map[string]string {
	have, keeps := s.capacity.Resources, s.distribution().NodeReserves
	if have.Cpu().IsZero() || have.Memory().IsZero() {
		return nil
	}
	cores, memory := have.Cpu().DeepCopy(), have.Memory().Value()
	cores.Sub(*keeps.Cpu())
	memory -= memory/pageTablesShare + kernelMemory + evictionMemory + keeps.Memory().Value()
	room := map[string]string{
		autoscalerCPU:    cores.String(),
		autoscalerMemory: mebibytes(memory),
		autoscalerPods:   strconv.Itoa(int(s.distribution().MaxPods)),
		autoscalerLabels: pairs(s.nodeLabels()),
		autoscalerTaints: taintsText(s.pool.Spec.Taints),
	}
	if disk := have.StorageEphemeral().Value(); disk > 0 {
		room[autoscalerDisk] = mebibytes(disk / 100 * diskPercent)
	}
	return room
}

// mebibytes writes bytes in the unit that a person reads, rounded down.
func mebibytes(bytes int64) string {
	return resource.NewQuantity(max(0, bytes)&^(1<<20-1), resource.BinarySI).String()
}

// nodeLabels are those that the pool's nodes are known to get.
func (s *scope) nodeLabels() map[string]string {
	labels := map[string]string{
		hyperv1.NodePoolLabel:    s.pool.Name,
		corev1.LabelArchStable:   cmp.Or(s.pool.Spec.Arch, hyperv1.ArchitectureAMD64),
		corev1.LabelTopologyZone: s.capacity.Zone,
	}
	maps.Copy(labels, s.pool.Spec.NodeLabels)
	maps.DeleteFunc(labels, func(key, value string) bool { return key == corev1.LabelTopologyZone && value == "" })
	return labels
}

func pairs(labels map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, key+"="+labels[key])
	}
	return strings.Join(all, ",")
}

func taintsText(taints []hyperv1.Taint) string {
	var all []string
	for _, taint := range taints {
		key := taint.Key
		if taint.Value != "" {
			key += "=" + taint.Value
		}
		all = append(all, fmt.Sprintf("%s:%s", key, taint.Effect))
	}
	return strings.Join(all, ",")
}

// replicas is how many machines a pool gets. With autoscaling the number belongs to the autoscaler, within the bounds.
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

// scalingMin is what the user asked for as the least number of machines.
func scalingMin(pool *hyperv1.NodePool) int32 {
	return ptr.Deref(pool.Spec.AutoScaling.Min, 1)
}

// bounds are those of the autoscaler. A platform whose machines tell the autoscaler nothing before they exist keeps one.
func bounds(pool *hyperv1.NodePool) (minimum, maximum int32) {
	minimum, maximum = scalingMin(pool), pool.Spec.AutoScaling.Max
	if traits, _ := platforms.Of(pool.Spec.Platform.Type); minimum == 0 && !traits.ScalesFromZero {
		minimum = 1
	}
	return minimum, max(minimum, maximum)
}

// autoscalerBounds are the bounds as annotations; both zero keep the autoscaler away.
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

// boundsInPlace keeps the autoscaler still while nodes are updated in place. A node that was emptied for that looks as if nobody needed it, and its
// pods as if they lacked a machine. Where the update stopped at a node, pods that lack one do so for long, and may get it.
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
