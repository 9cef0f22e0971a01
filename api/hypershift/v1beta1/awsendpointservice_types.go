// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Conditions of an AWSEndpointService, which its HostedCluster sums up.
const (
	// AWSEndpointServiceAvailable reports whether the load balancer of the control plane is offered to other networks.
	AWSEndpointServiceAvailable ConditionType = "AWSEndpointServiceAvailable"
	// AWSEndpointAvailable reports whether the network of the nodes has an endpoint that leads to it.
	AWSEndpointAvailable ConditionType = "AWSEndpointAvailable"
)

// Reasons of these conditions.
const (
	AWSSuccessReason = "AWSSuccess"
	AWSErrorReason   = "AWSError"
)

// AWSEndpointService asks that the network load balancer of a hosted control plane is reached from the network of its nodes, by
// AWS PrivateLink. The control-plane-operator of a release payload makes it, in the namespace of the HostedControlPlane.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=awsendpointservices,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type AWSEndpointService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is to be reached, and from where.
	// +optional
	Spec AWSEndpointServiceSpec `json:"spec,omitempty"`
	// status tells what was made in AWS.
	// +optional
	Status AWSEndpointServiceStatus `json:"status,omitempty"`
}

// AWSEndpointServiceSpec says what is to be reached, and from where.
type AWSEndpointServiceSpec struct {
	// networkLoadBalancerName is the name of the load balancer.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	NetworkLoadBalancerName string `json:"networkLoadBalancerName"`

	// subnetIDs are the subnets of the nodes, in which the endpoint is: those of all NodePools. hypershift-operator writes them.
	//
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	SubnetIDs []string `json:"subnetIDs,omitempty"`

	// resourceTags are put on what is made in AWS.
	//
	// +kubebuilder:validation:MaxItems=25
	// +kubebuilder:validation:XValidation:rule=`self.all(t, !has(t.overridePolicy))`,message=`overridePolicy has no meaning here: set it on the tag of the HostedCluster`
	// +optional
	ResourceTags []AWSResourceTag `json:"resourceTags,omitempty"`
}

// AWSEndpointServiceStatus tells what was made in AWS.
type AWSEndpointServiceStatus struct {
	// conditions are AWSEndpointServiceAvailable and AWSEndpointAvailable.
	//
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// endpointServiceName is the name of the endpoint service, which offers the load balancer.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	EndpointServiceName string `json:"endpointServiceName,omitempty"`

	// endpointID is the endpoint in the network of the nodes.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	EndpointID string `json:"endpointID,omitempty"`

	// dnsNames are names that lead to the endpoint there.
	//
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	DNSNames []string `json:"dnsNames,omitempty"`

	// dnsZoneID is the private zone that they are in.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	DNSZoneID string `json:"dnsZoneID,omitempty"`

	// securityGroupID guards the endpoint.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	SecurityGroupID string `json:"securityGroupID,omitempty"`
}

// AWSEndpointServiceList is a list of AWSEndpointServices.
//
// +kubebuilder:object:root=true
type AWSEndpointServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AWSEndpointService `json:"items"`
}
