// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ScalingType says which ways the cluster autoscaler may go.
//
// +kubebuilder:validation:Enum=ScaleUpOnly;ScaleUpAndScaleDown
type ScalingType string

const (
	// ScaleUpOnly adds nodes only.
	ScaleUpOnly ScalingType = "ScaleUpOnly"
	// ScaleUpAndScaleDown adds and removes nodes.
	ScaleUpAndScaleDown ScalingType = "ScaleUpAndScaleDown"
)

// ExpanderString is a way to choose among the NodePools that could grow.
//
// +kubebuilder:validation:Enum=LeastWaste;Priority;Random
type ExpanderString string

const (
	// LeastWasteExpander takes the pool that leaves the least CPU idle.
	LeastWasteExpander ExpanderString = "LeastWaste"
	// PriorityExpander takes the pool with the highest priority.
	PriorityExpander ExpanderString = "Priority"
	// RandomExpander takes any.
	RandomExpander ExpanderString = "Random"
)

// ClusterAutoscaling tunes the cluster autoscaler.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.scaleDown) || !has(self.scaling) || self.scaling == 'ScaleUpAndScaleDown'`,message=`autoscaling.scaleDown needs autoscaling.scaling ScaleUpAndScaleDown`
type ClusterAutoscaling struct {
	// scaling says which ways it may go.
	// +kubebuilder:default:=ScaleUpAndScaleDown
	// +optional
	Scaling ScalingType `json:"scaling,omitempty"`

	// scaleDown tunes the removal of nodes. It needs scaling ScaleUpAndScaleDown.
	// +optional
	ScaleDown *ScaleDownConfig `json:"scaleDown,omitempty"`

	// balancingIgnoredLabels are node labels (keys) that do not tell NodePools apart when they are kept at equal size.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.all(k, k.matches(r'^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))`,message=`autoscaling.balancingIgnoredLabels must be keys of labels, such as topology.kubernetes.io/zone`
	BalancingIgnoredLabels []string `json:"balancingIgnoredLabels,omitempty"`

	// maxNodesTotal is the most nodes that the cluster may have. Unset means no bound.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxNodesTotal *int32 `json:"maxNodesTotal,omitempty"`

	// maxPodGracePeriod is how many seconds a pod may take to end when its node is removed. Unset means 600.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxPodGracePeriod *int32 `json:"maxPodGracePeriod,omitempty"`

	// maxNodeProvisionTime is how long a node may take to come up, e.g. "90m". Unset means "15m", which is too short for
	// most metal.
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	MaxNodeProvisionTime string `json:"maxNodeProvisionTime,omitempty"`

	// maxFreeDifferenceRatioPercent is by how many percent the free resources of two NodePools may differ and they still
	// count as alike. Unset means 5.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxFreeDifferenceRatioPercent *int32 `json:"maxFreeDifferenceRatioPercent,omitempty"`

	// podPriorityThreshold is the priority below which pods neither call for nodes nor keep them. Unset means -10.
	// +optional
	PodPriorityThreshold *int32 `json:"podPriorityThreshold,omitempty"`

	// expanders are the ways to choose among NodePools, first to last. Empty means Priority, then LeastWaste.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +optional
	Expanders []ExpanderString `json:"expanders,omitempty"`
}

// ScaleDownConfig tunes the removal of nodes.
type ScaleDownConfig struct {
	// delayAfterAddSeconds is how many seconds after a node was added removal is thought of again. Unset means 600.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DelayAfterAddSeconds *int32 `json:"delayAfterAddSeconds,omitempty"`

	// delayAfterDeleteSeconds is how many seconds after a node was removed removal is thought of again. Unset means 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DelayAfterDeleteSeconds *int32 `json:"delayAfterDeleteSeconds,omitempty"`

	// delayAfterFailureSeconds is how many seconds after a failed removal removal is thought of again. Unset means 180.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DelayAfterFailureSeconds *int32 `json:"delayAfterFailureSeconds,omitempty"`

	// unneededDurationSeconds is how many seconds a node must be unneeded before it is removed. Unset means 600.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	UnneededDurationSeconds *int32 `json:"unneededDurationSeconds,omitempty"`

	// utilizationThresholdPercent is the share of a node's resources in use below which it counts as unneeded. Unset
	// means 50.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	UtilizationThresholdPercent *int32 `json:"utilizationThresholdPercent,omitempty"`
}

// Provisioner makes nodes without a NodePool.
//
// +kubebuilder:validation:Enum=Karpenter
type Provisioner string

const (
	// ProvisionerKarpenter is Karpenter.
	ProvisionerKarpenter Provisioner = "Karpenter"
)

// AutoNode lets a provisioner make nodes without a NodePool.
type AutoNode struct {
	// provisionerConfig is the provisioner and its settings.
	// +required
	Provisioner ProvisionerConfig `json:"provisionerConfig"`
}

// ProvisionerConfig is a provisioner: its name, and the block that belongs to it.
//
// +kubebuilder:validation:XValidation:rule=`(self.name == 'Karpenter') == has(self.karpenter)`,message=`autoNode.provisionerConfig.karpenter is required when its name is Karpenter`
type ProvisionerConfig struct {
	// name is the provisioner.
	// +unionDiscriminator
	// +required
	Name Provisioner `json:"name"`

	// karpenter goes with name Karpenter.
	// +optional
	Karpenter *KarpenterConfig `json:"karpenter,omitempty"`
}

// KarpenterConfig is the settings of Karpenter: the platform, and the block that belongs to it.
//
// +kubebuilder:validation:XValidation:rule=`(self.platform == 'AWS') == has(self.aws)`,message=`autoNode.provisionerConfig.karpenter.aws is required when its platform is AWS`
type KarpenterConfig struct {
	// platform is where Karpenter makes nodes; AWS is the only one.
	// +kubebuilder:validation:Enum=AWS
	// +unionDiscriminator
	// +required
	Platform PlatformType `json:"platform"`

	// aws goes with platform AWS.
	// +optional
	AWS *KarpenterAWSConfig `json:"aws,omitempty"`
}

// KarpenterAWSConfig is the settings of Karpenter on AWS.
type KarpenterAWSConfig struct {
	// roleARN is the ARN of the role that Karpenter works with.
	// +kubebuilder:validation:MaxLength=2048
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$')`,message=`autoNode.provisionerConfig.karpenter.aws.roleARN must be the ARN of a role, such as arn:aws:iam::123456789012:role/karpenter`
	RoleARN string `json:"roleARN"`
}
