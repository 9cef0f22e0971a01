// SPDX-License-Identifier: Apache-2.0

package v1beta1

// PlatformType is where nodes live.
//
// +kubebuilder:validation:MaxLength=100
type PlatformType string

const (
	// MAASPlatform makes nodes of machines that MAAS (Metal as a Service) manages.
	MAASPlatform PlatformType = "MAAS"
	// NonePlatform makes no nodes: the user joins them.
	NonePlatform PlatformType = "None"
	// AgentPlatform makes nodes of the hosts that the assisted installer knows.
	AgentPlatform PlatformType = "Agent"
	// KubevirtPlatform makes nodes of virtual machines of KubeVirt.
	KubevirtPlatform PlatformType = "KubeVirt"
	// AWSPlatform makes nodes of EC2 instances.
	AWSPlatform PlatformType = "AWS"
)

// String returns the name of the platform as it stands in YAML.
func (p PlatformType) String() string { return string(p) }

// PlatformSpec is where the nodes of a cluster live: the type, and the block that belongs to it.
//
// +kubebuilder:validation:XValidation:rule=`(self.type == 'MAAS') == has(self.maas)`,message=`platform.maas is required when platform.type is MAAS, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.type == 'Agent') == has(self.agent)`,message=`platform.agent is required when platform.type is Agent, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`!has(self.aws) || self.type == 'AWS'`,message=`platform.aws is forbidden when platform.type is not AWS`
// +kubebuilder:validation:XValidation:rule=`!has(self.kubevirt) || self.type == 'KubeVirt'`,message=`platform.kubevirt is forbidden when platform.type is not KubeVirt`
type PlatformSpec struct {
	// type is the platform. It cannot be changed.
	// +unionDiscriminator
	// +kubebuilder:validation:Enum=MAAS;None;Agent;KubeVirt;AWS
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`platform.type is immutable: create a new HostedCluster for another platform`
	Type PlatformType `json:"type"`

	// maas goes with type MAAS.
	// +optional
	MAAS *MAASPlatformSpec `json:"maas,omitempty"`

	// agent goes with type Agent.
	// +optional
	Agent *AgentPlatformSpec `json:"agent,omitempty"`

	// kubevirt goes with type KubeVirt.
	// +optional
	Kubevirt *KubevirtPlatformSpec `json:"kubevirt,omitempty"`

	// aws goes with type AWS. The operator refuses a cluster on AWS without it, not the API server.
	// +optional
	AWS *AWSPlatformSpec `json:"aws,omitempty"`
}
