// SPDX-License-Identifier: Apache-2.0

package component

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// PriorityClass is the name of a priority class, which determines how likely pods are preempted.
type PriorityClass string

// The priority classes of a hosted control plane, which `hypershift install` creates.
const (
	PriorityDefault     PriorityClass = "hypershift-control-plane"
	PriorityAPICritical PriorityClass = "hypershift-api-critical"
	PriorityEtcd        PriorityClass = "hypershift-etcd"
)

// priorityOverrides holds the annotations with which a user chooses other priority classes.
var priorityOverrides = map[PriorityClass]string{
	PriorityDefault:     hyperv1.ControlPlanePriorityClass,
	PriorityAPICritical: hyperv1.APICriticalPriorityClass,
	PriorityEtcd:        hyperv1.EtcdPriorityClass,
}

// Labels and taints of management cluster nodes that are reserved for control planes.
const (
	controlPlaneNodeKey   = "hypershift.openshift.io/control-plane"
	clusterNodeKey        = hyperv1.HostedClusterLabel
	requestServingNodeKey = hyperv1.RequestServingComponentLabel
	hostTopology          = "kubernetes.io/hostname"
	zoneTopology          = "topology.kubernetes.io/zone"
)

func (c *Component) priority(hcp *hyperv1.HostedControlPlane) string {
	class := c.Priority
	if class == "" {
		class = PriorityDefault
	}
	if override := hcp.Annotations[priorityOverrides[class]]; override != "" {
		return override
	}
	return string(class)
}

func (c *Component) setScheduling(hcp *hyperv1.HostedControlPlane, w *workload) {
	pod := &w.template.Spec
	pod.PriorityClassName = c.priority(hcp)
	if len(hcp.Spec.NodeSelector) > 0 {
		selector := maps.Clone(hcp.Spec.NodeSelector)
		maps.Copy(selector, pod.NodeSelector)
		pod.NodeSelector = selector
	}
	pod.Tolerations = append(pod.Tolerations, c.tolerations(hcp)...)
	if c.Singleton && hcp.Spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable {
		pod.Tolerations = append(pod.Tolerations, giveUp(pod.Tolerations)...)
	}
	affinity := &corev1.Affinity{
		NodeAffinity: c.nodeAffinity(hcp),
		PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight:          100,
			PodAffinityTerm: podTerm(hostTopology, map[string]string{hostedControlPlaneLabel: hcp.Namespace}),
		}}},
	}
	if c.MultiZone && w.replicas != nil && **w.replicas > 1 {
		c.spread(hcp.Namespace, w, affinity)
	}
	pod.Affinity = affinity
}

func (c *Component) tolerations(hcp *hyperv1.HostedControlPlane) []corev1.Toleration {
	tolerate := func(key, value string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	all := []corev1.Toleration{tolerate(controlPlaneNodeKey, "true"), tolerate(clusterNodeKey, hcp.Namespace)}
	if c.RequestServing {
		all = append(all, tolerate(requestServingNodeKey, "true"))
	}
	return append(all, hcp.Spec.Tolerations...)
}

// deadNode is the time, in seconds, after which a single pod of a highly available control plane is evicted from a dead
// node. Kubernetes' default of five minutes suits pods with other replicas.
const deadNode = 60

// giveUp returns short tolerations for dead and unreachable nodes, except for taints that are already tolerated. If the
// node is still alive, the component's lease prevents both pods from working at the same time.
func giveUp(tolerated []corev1.Toleration) []corev1.Toleration {
	var all []corev1.Toleration
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute}
		if !slices.ContainsFunc(tolerated, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), &taint, false) }) {
			all = append(all, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: taint.Effect, TolerationSeconds: ptr.To[int64](deadNode)})
		}
	}
	return all
}

func (c *Component) nodeAffinity(hcp *hyperv1.HostedControlPlane) *corev1.NodeAffinity {
	has := func(key, value string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
	}
	prefer := func(weight int32, requirement corev1.NodeSelectorRequirement) corev1.PreferredSchedulingTerm {
		return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{requirement},
		}}
	}
	affinity := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
		prefer(50, has(controlPlaneNodeKey, "true")),
		prefer(100, has(clusterNodeKey, hcp.Namespace)),
	}}
	if c.RequestServing && hcp.Annotations[topologyAnnotation] == dedicatedTopology {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{has(requestServingNodeKey, "true"), has(clusterNodeKey, hcp.Namespace)},
		}}}
	}
	return affinity
}

// spread spreads the replicas over hosts and zones.
func (c *Component) spread(namespace string, w *workload, affinity *corev1.Affinity) {
	zones, hosts := Apart(map[string]string{componentLabel: c.Name, hostedControlPlaneLabel: namespace})
	affinity.PodAntiAffinity = zones
	if _, revisions := w.object.(*appsv1.Deployment); revisions {
		// Do not count pods of the previous revision: they are about to be deleted.
		hosts.MatchLabelKeys = []string{appsv1.DefaultDeploymentUniqueLabelKey}
	}
	w.template.Spec.TopologySpreadConstraints = append(w.template.Spec.TopologySpreadConstraints, hosts)
}

// Apart spreads pods with these labels over hosts and, if there are several, zones. Zones are a preference: bare metal
// often has one zone, or no zone labels. A host gets a second replica only if every usable host has one. A dead host
// then leaves no replica unscheduled, and two hosts are sufficient. If a third etcd member waited for its own host, the
// others could never be updated. Waiting would not improve availability either, because two of three members must run
// in any case.
func Apart(labels map[string]string) (*corev1.PodAntiAffinity, corev1.TopologySpreadConstraint) {
	zones := &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
		{Weight: 100, PodAffinityTerm: podTerm(zoneTopology, labels)},
	}}
	return zones, corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: hostTopology, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		// Do not wait for cordoned or dead hosts.
		NodeTaintsPolicy: ptr.To(corev1.NodeInclusionPolicyHonor),
	}
}

func podTerm(topology string, labels map[string]string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: topology, LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}
}

// addTmp gives every container a writable /tmp, and lets the cluster autoscaler evict pods despite their scratch
// volumes.
func addTmp(pod *corev1.PodTemplateSpec) {
	spec := &pod.Spec
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: tmpVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: tmpVolume, MountPath: "/tmp"})
		}
	}
	var scratch []string
	for _, volume := range spec.Volumes {
		if volume.EmptyDir != nil {
			scratch = append(scratch, volume.Name)
		}
	}
	pod.Annotations[safeToEvictAnnotation] = strings.Join(scratch, ",")
}
