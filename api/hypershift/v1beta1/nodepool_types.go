// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Architectures of nodes.
const (
	ArchitectureAMD64   = "amd64"
	ArchitectureARM64   = "arm64"
	ArchitecturePPC64LE = "ppc64le"
	ArchitectureS390X   = "s390x"
)

// NodePoolSpec says what the nodes of a pool should be.
//
// +kubebuilder:validation:XValidation:rule=`(!has(self.arch) || self.arch != 'arm64' || self.platform.type in ['AWS', 'Azure', 'Agent', 'GCP', 'None', 'MAAS']) || oldSelf.optMap(o, !(!has(o.arch) || o.arch != 'arm64' || o.platform.type in ['AWS', 'Azure', 'Agent', 'GCP', 'None', 'MAAS'])).orValue(false)`,message="arch arm64 is not supported by this platform: set arch to amd64",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(!has(self.arch) || self.arch != 's390x' || self.platform.type == 'KubeVirt') || oldSelf.optMap(o, !(!has(o.arch) || o.arch != 's390x' || o.platform.type == 'KubeVirt')).orValue(false)`,message="arch s390x is supported by platform KubeVirt only: set another arch",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(!(has(self.replicas) && has(self.autoScaling))) || oldSelf.optMap(o, !(!(has(o.replicas) && has(o.autoScaling)))).orValue(false)`,message="replicas and autoScaling exclude each other: remove one of them",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(!has(self.autoScaling) || self.autoScaling.min > 0 || self.platform.type in ['AWS', 'Azure', 'MAAS']) || oldSelf.optMap(o, !(!has(o.autoScaling) || o.autoScaling.min > 0 || o.platform.type in ['AWS', 'Azure', 'MAAS'])).orValue(false)`,message="autoScaling.min must be at least 1 on this platform",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(self.platform.type != 'AWS' || !has(self.platform.aws) || !has(self.platform.aws.imageType) || self.platform.aws.imageType != 'Windows' || !has(self.arch) || self.arch == 'amd64') || oldSelf.optMap(o, !(o.platform.type != 'AWS' || !has(o.platform.aws) || !has(o.platform.aws.imageType) || o.platform.aws.imageType != 'Windows' || !has(o.arch) || o.arch == 'amd64')).orValue(false)`,message="imageType Windows needs arch amd64",optionalOldSelf=true
type NodePoolSpec struct {
	// clusterName is the HostedCluster in the same namespace that the pool belongs to.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName is immutable: create a new NodePool for another cluster"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="clusterName must consist of lower case letters, digits and '-', beginning and ending with a letter or digit"
	// +required
	ClusterName string `json:"clusterName"`

	// release that the nodes run. It may be older than the HostedCluster's by up to three minor versions, never newer.
	//
	// +required
	Release Release `json:"release"`

	// platform of the nodes.
	//
	// +required
	Platform NodePoolPlatform `json:"platform"`

	// replicas is the desired number of nodes. Absent with autoScaling, and else means 0.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self >= 0`,message=`replicas must be at least 0`
	Replicas *int32 `json:"replicas,omitempty"`

	// management says how nodes are upgraded and repaired.
	//
	// +required
	Management NodePoolManagement `json:"management"`

	// autoScaling lets the cluster autoscaler choose the number of nodes.
	//
	// +optional
	AutoScaling *NodePoolAutoScaling `json:"autoScaling,omitempty"`

	// config names ConfigMaps in the same namespace whose key "config" holds MachineConfig, KubeletConfig and the like. A
	// change rolls the pool.
	//
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Config []corev1.LocalObjectReference `json:"config,omitempty"`

	// nodeDrainTimeout bounds the draining of a node. 0 or absent waits indefinitely.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self != '' && self.matches(r'^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?([0-9]{1,9}(\.[0-9]+)?(ms|us|µs|ns)){0,3}$')`,message=`nodeDrainTimeout must be a duration of at most 99999h, such as 30m or 1h30m`
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout bounds the wait for volumes to be detached. 0 or absent waits indefinitely.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self != '' && self.matches(r'^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?([0-9]{1,9}(\.[0-9]+)?(ms|us|µs|ns)){0,3}$')`,message=`nodeVolumeDetachTimeout must be a duration of at most 99999h, such as 30m or 1h30m`
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeLabels are put on the nodes.
	//
	// +optional
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`

	// taints are put on the nodes.
	//
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Taints []Taint `json:"taints,omitempty"`

	// pausedUntil stops reconciling until an RFC 3339 date, or for as long as it is "true".
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=35
	// +kubebuilder:validation:XValidation:rule="self in ['true', 'True', 'TRUE', 'false', 'False', 'FALSE'] || self.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\\\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$')",message="pausedUntil must be an RFC 3339 date such as 2026-01-31T12:00:00Z, or true or false"
	// +optional
	PausedUntil *string `json:"pausedUntil,omitempty"`

	// tuningConfig names ConfigMaps in the same namespace whose key "tuning" holds Tuned or PerformanceProfile objects.
	//
	// +kubebuilder:validation:MaxItems=10
	// +optional
	TuningConfig []corev1.LocalObjectReference `json:"tuningConfig,omitempty"`

	// arch of the nodes' processors.
	//
	// +kubebuilder:default=amd64
	// +kubebuilder:validation:Enum=arm64;amd64;s390x;ppc64le
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="arch is immutable: create a new NodePool for another architecture"
	// +optional
	Arch string `json:"arch,omitempty"`

	// osImageStream picks the operating system stream of an OpenShift payload.
	//
	// +optional
	OSImageStream *OSImageStreamReference `json:"osImageStream,omitempty"`
}

// OSImageStreamReference names an operating system stream.
type OSImageStreamReference struct {
	// name of the stream.
	//
	// +kubebuilder:validation:Enum=rhel-9;rhel-10
	// +required
	Name string `json:"name"`
}

// NodePoolPlatform is the platform of a pool's nodes. A block is set if and only if type names it.
//
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",message="platform.type is immutable: create a new NodePool for another platform"
// +kubebuilder:validation:XValidation:rule="(self.type == 'MAAS') == has(self.maas)",message="platform.maas is required when platform.type is MAAS, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.aws) || self.type == 'AWS'",message="platform.aws is forbidden when platform.type is not AWS"
// +kubebuilder:validation:XValidation:rule="!has(self.kubevirt) || self.type == 'KubeVirt'",message="platform.kubevirt is forbidden when platform.type is not KubeVirt"
// +kubebuilder:validation:XValidation:rule="!has(self.agent) || self.type == 'Agent'",message="platform.agent is forbidden when platform.type is not Agent"
type NodePoolPlatform struct {
	// type of the platform.
	//
	// +kubebuilder:validation:Enum=MAAS;None;Agent;KubeVirt;AWS
	// +required
	Type PlatformType `json:"type"`

	// aws shapes nodes of type AWS.
	//
	// +optional
	AWS *AWSNodePoolPlatform `json:"aws,omitempty"`

	// kubevirt shapes nodes of type KubeVirt.
	//
	// +optional
	Kubevirt *KubevirtNodePoolPlatform `json:"kubevirt,omitempty"`

	// agent shapes nodes of type Agent.
	//
	// +optional
	Agent *AgentNodePoolPlatform `json:"agent,omitempty"`

	// maas shapes nodes of type MAAS.
	//
	// +optional
	MAAS *MAASNodePoolPlatform `json:"maas,omitempty"`
}

// NodePoolAutoScaling bounds the number of nodes that the autoscaler chooses.
//
// +kubebuilder:validation:XValidation:rule="self.max >= self.min",message="autoScaling.max must not be less than autoScaling.min"
type NodePoolAutoScaling struct {
	// min is the least number of nodes. With 0, all machines are released while no pod needs one. The platform must then report what a machine
	// brings before there is one, as AWS, Azure and MAAS do.
	//
	// +kubebuilder:validation:Minimum=0
	// +required
	Min *int32 `json:"min"`

	// max is the greatest number of nodes.
	//
	// +kubebuilder:validation:Minimum=1
	// +required
	Max int32 `json:"max"`
}

// Taint is put on the nodes of a pool.
type Taint struct {
	// key of the taint.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="the key of a taint must be a qualified name, such as \"example.com/dedicated\""
	// +required
	Key string `json:"key"`

	// value of the taint.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="the value of a taint must be a valid label value"
	// +optional
	Value string `json:"value,omitempty"`

	// effect of the taint.
	//
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	// +required
	Effect corev1.TaintEffect `json:"effect"`
}

// NodePoolStatus is what the pool is.
type NodePoolStatus struct {
	// replicas is the number of available nodes.
	//
	// +optional
	Replicas int32 `json:"replicas"`

	// selector picks the Machines of the pool, for the scale subresource.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Selector string `json:"selector,omitempty"`

	// nodesInfo tells what the nodes run.
	//
	// +optional
	NodesInfo *NodePoolNodesInfo `json:"nodesInfo,omitempty"`

	// version that all nodes of the pool have come to.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Version string `json:"version,omitempty"`

	// resolvedRelease is what spec.release.image named when the pool first read it. A tag that is moved later changes
	// nothing.
	//
	// +optional
	ResolvedRelease *NodePoolResolvedRelease `json:"resolvedRelease,omitempty"`

	// platform tells what was made for the pool.
	//
	// +optional
	Platform *NodePoolPlatformStatus `json:"platform,omitempty"`

	// osImageStream that most nodes run.
	//
	// +optional
	OSImageStream *OSImageStreamReference `json:"osImageStream,omitempty"`

	// conditions tell how the pool is.
	//
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Conditions []NodePoolCondition `json:"conditions,omitempty"`
}

// NodePoolResolvedRelease is a release image and the digest that it had.
type NodePoolResolvedRelease struct {
	// image is spec.release.image as it was read.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Image string `json:"image"`

	// pinnedImage is the pull spec of the same release by its digest.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	PinnedImage string `json:"pinnedImage"`
}

// NodePoolNodesInfo tells what the nodes of a pool run.
type NodePoolNodesInfo struct {
	// nodeVersions counts nodes by what they run.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +required
	NodeVersions []NodeVersion `json:"nodeVersions"`
}

// NodeVersion counts the nodes that run the same versions.
type NodeVersion struct {
	// ocpVersion is the version of the release payload.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	OCPVersion string `json:"ocpVersion"`

	// kubeletVersion is the version of the kubelet.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	KubeletVersion string `json:"kubeletVersion"`

	// readyNodeCount is the number of nodes that are Ready.
	//
	// +kubebuilder:validation:Minimum=0
	// +required
	ReadyNodeCount *int32 `json:"readyNodeCount"`

	// unreadyNodeCount is the number of nodes that are not Ready.
	//
	// +kubebuilder:validation:Minimum=0
	// +required
	UnreadyNodeCount *int32 `json:"unreadyNodeCount"`
}

// NodePoolPlatformStatus tells what was made for a pool.
type NodePoolPlatformStatus struct {
	// kubeVirt tells what was made for a pool of virtual machines.
	//
	// +optional
	KubeVirt *KubeVirtNodePoolStatus `json:"kubeVirt,omitempty"`
}

// NodePoolCondition is a condition of a pool. It has a severity, unlike metav1.Condition, as upstream's has.
type NodePoolCondition struct {
	// type of the condition.
	//
	// +kubebuilder:validation:MaxLength=316
	// +required
	Type string `json:"type"`

	// status of the condition.
	//
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +required
	Status corev1.ConditionStatus `json:"status"`

	// severity of the condition. Empty means informational.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Severity string `json:"severity,omitempty"`

	// lastTransitionTime is when the status changed last.
	//
	// +required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// reason is one word of why.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`

	// message tells a person why.
	//
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Message string `json:"message,omitempty"`

	// observedGeneration is the generation of the spec that the condition was observed at.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// NodePool is a set of like nodes of a HostedCluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=nodepools,shortName=np;nps,scope=Namespaced,categories=hypershift
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="The HostedCluster of the pool"
// +kubebuilder:printcolumn:name="Desired Nodes",type="integer",JSONPath=".spec.replicas",description="Desired number of nodes"
// +kubebuilder:printcolumn:name="Current Nodes",type="integer",JSONPath=".status.replicas",description="Nodes that are available"
// +kubebuilder:printcolumn:name="Autoscaling",type="string",JSONPath=".status.conditions[?(@.type==\"AutoscalingEnabled\")].status",description="Whether the autoscaler chooses the number of nodes"
// +kubebuilder:printcolumn:name="Autorepair",type="string",JSONPath=".status.conditions[?(@.type==\"AutorepairEnabled\")].status",description="Whether machines that are not well are replaced"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".status.version",description="Version of the nodes"
// +kubebuilder:printcolumn:name="UpdatingVersion",type="string",JSONPath=".status.conditions[?(@.type==\"UpdatingVersion\")].status",description="Whether nodes come to a new version"
// +kubebuilder:printcolumn:name="UpdatingConfig",type="string",JSONPath=".status.conditions[?(@.type==\"UpdatingConfig\")].status",description="Whether nodes come to a new configuration"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description="What the pool waits for"
// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() || has(self.spec)`,message=`spec is required`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() || size(self.metadata.name) <= 63`,message=`metadata.name must have at most 63 characters, so that nodes can carry it in a label`,optionalOldSelf=true
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the pool should be.
	//
	// +optional
	Spec NodePoolSpec `json:"spec,omitempty"`

	// status is what the pool is.
	//
	// +optional
	Status NodePoolStatus `json:"status,omitempty"`
}

// NodePoolList is a list of NodePools.
//
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePool `json:"items"`
}
