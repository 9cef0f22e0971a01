// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AWSPlatformSpec says how a cluster uses AWS.
type AWSPlatformSpec struct {
	// region of the cluster.
	//
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-zA-Z0-9-]+$')`,message=`region must be the name of an AWS region, such as eu-north-1`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="region is immutable: create a new HostedCluster to change it"
	// +required
	Region string `json:"region"`

	// rolesRef names the IAM roles of the cluster's operators.
	//
	// +required
	RolesRef AWSRolesRef `json:"rolesRef"`

	// cloudProviderConfig says where the cloud provider makes load balancers.
	//
	// +optional
	CloudProviderConfig *AWSCloudProviderConfig `json:"cloudProviderConfig,omitempty"`

	// endpointAccess says from where the API is reached.
	//
	// +kubebuilder:default=Public
	// +optional
	EndpointAccess AWSEndpointAccessType `json:"endpointAccess,omitempty"`

	// serviceEndpoints replace AWS's own endpoints.
	//
	// +kubebuilder:validation:MaxItems=50
	// +optional
	ServiceEndpoints []AWSServiceEndpoint `json:"serviceEndpoints,omitempty"`

	// resourceTags are put on all that is made in AWS.
	//
	// +kubebuilder:validation:MaxItems=25
	// +optional
	ResourceTags []AWSResourceTag `json:"resourceTags,omitempty"`

	// additionalAllowedPrincipals may connect to the cluster's endpoint service.
	//
	// +kubebuilder:validation:MaxItems=25
	// +kubebuilder:validation:items:MaxLength=255
	// +optional
	AdditionalAllowedPrincipals []string `json:"additionalAllowedPrincipals,omitempty"`

	// multiArch says that pools of other architectures are allowed.
	//
	// +kubebuilder:default=false
	// +optional
	MultiArch bool `json:"multiArch"`

	// sharedVPC is the VPC of another account.
	//
	// +optional
	SharedVPC *AWSSharedVPC `json:"sharedVPC,omitempty"`

	// terminationHandlerQueueURL is the SQS queue that announces interruptions.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https://sqs\.[a-z0-9-]+\.amazonaws\.com/[0-9]{12}/[a-zA-Z0-9_-]+(\.fifo)?$`
	// +optional
	TerminationHandlerQueueURL *string `json:"terminationHandlerQueueURL,omitempty"`
}

// AWSEndpointAccessType says from where the API is reached.
//
// +kubebuilder:validation:Enum=Public;PublicAndPrivate;Private
type AWSEndpointAccessType string

// The kinds of access.
const (
	Public           AWSEndpointAccessType = "Public"
	PublicAndPrivate AWSEndpointAccessType = "PublicAndPrivate"
	Private          AWSEndpointAccessType = "Private"
)

// AWSRolesRef names the IAM roles of the cluster's operators.
type AWSRolesRef struct {
	// ingressARN is the role of the ingress operator.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +required
	IngressARN string `json:"ingressARN"`

	// imageRegistryARN is the role of the image registry operator.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +required
	ImageRegistryARN string `json:"imageRegistryARN"`

	// storageARN is the role of the EBS driver operator.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +required
	StorageARN string `json:"storageARN"`

	// networkARN is the role of the cloud network config controller.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +required
	NetworkARN string `json:"networkARN"`

	// kubeCloudControllerARN is the role of the cloud controller manager.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +required
	KubeCloudControllerARN string `json:"kubeCloudControllerARN"`

	// nodePoolManagementARN is the role of the Cluster API provider.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +required
	NodePoolManagementARN string `json:"nodePoolManagementARN"`

	// controlPlaneOperatorARN is the role of the control plane operator.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +required
	ControlPlaneOperatorARN string `json:"controlPlaneOperatorARN"`
}

// AWSCloudProviderConfig says where the cloud provider makes load balancers.
type AWSCloudProviderConfig struct {
	// subnet of the control plane.
	//
	// +optional
	Subnet *AWSResourceReference `json:"subnet,omitempty"`

	// zone of the subnet.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Zone string `json:"zone,omitempty"`

	// vpc of the cluster.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	VPC string `json:"vpc"`
}

// AWSServiceEndpoint replaces one of AWS's endpoints.
type AWSServiceEndpoint struct {
	// name of the service.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	Name string `json:"name"`

	// url of the endpoint.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https://`
	// +required
	URL string `json:"url"`
}

// AWSResourceTag is a tag in AWS.
type AWSResourceTag struct {
	// key of the tag.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Key string `json:"key"`

	// value of the tag.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Value string `json:"value"`

	// overridePolicy specifies whether a pool may give the tag another value.
	//
	// +kubebuilder:validation:Enum=Allow;Deny
	// +optional
	OverridePolicy string `json:"overridePolicy,omitempty"`
}

// AWSSharedVPC is the VPC of another account.
type AWSSharedVPC struct {
	// rolesRef names the roles in the other account.
	//
	// +required
	RolesRef AWSSharedVPCRolesRef `json:"rolesRef"`

	// localZoneID is the private hosted zone.
	//
	// +kubebuilder:validation:MaxLength=32
	// +required
	LocalZoneID string `json:"localZoneID"`
}

// AWSSharedVPCRolesRef names the roles in the account of a shared VPC.
type AWSSharedVPCRolesRef struct {
	// ingressARN is the role for DNS records.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role\/.*$`
	// +required
	IngressARN string `json:"ingressARN"`

	// controlPlaneARN is the role for endpoints.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role\/.*$`
	// +required
	ControlPlaneARN string `json:"controlPlaneARN"`
}

// AWSResourceReference names a resource by its id or by filters.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) && self.id.startsWith('subnet-') ? !has(self.filters) : true",message="subnet needs either id or filters, not both"
type AWSResourceReference struct {
	// id of the resource.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	ID *string `json:"id,omitempty"`

	// filters that pick the resource.
	//
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Filters []Filter `json:"filters,omitempty"`
}

// Filter picks resources of AWS.
type Filter struct {
	// name of the filter.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	Name string `json:"name"`

	// values that match.
	//
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=255
	// +required
	Values []string `json:"values"`
}

// AWSPlatformStatus is what was made in AWS for a cluster.
type AWSPlatformStatus struct {
	// defaultWorkerSecurityGroupID is the security group of the workers.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	DefaultWorkerSecurityGroupID string `json:"defaultWorkerSecurityGroupID,omitempty"`
}
