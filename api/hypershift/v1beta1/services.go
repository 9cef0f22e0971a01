// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ServicePublishingStrategyMapping says how one control-plane service is published.
//
// +kubebuilder:validation:XValidation:rule=`self.servicePublishingStrategy.type != 'S3' || self.service == 'OIDC'`,message=`servicePublishingStrategy.type S3 is for service OIDC only: choose LoadBalancer, NodePort or Route`
// +kubebuilder:validation:XValidation:rule=`self.servicePublishingStrategy.type != 'None' || self.service in ['OIDC', 'OVNSbDb']`,message=`servicePublishingStrategy.type None is for services OIDC and OVNSbDb only: choose LoadBalancer, NodePort or Route`
type ServicePublishingStrategyMapping struct {
	// service is the service.
	// +required
	Service ServiceType `json:"service"`

	// servicePublishingStrategy is how it is published.
	// +required
	ServicePublishingStrategy ServicePublishingStrategy `json:"servicePublishingStrategy"`
}

// ServiceType is a control-plane service that is reached from outside of it.
//
// +kubebuilder:validation:Enum=APIServer;OAuthServer;OIDC;Konnectivity;Ignition;OVNSbDb
type ServiceType string

const (
	// APIServer is the Kubernetes API.
	APIServer ServiceType = "APIServer"
	// Konnectivity is the tunnel through which the control plane reaches the nodes.
	Konnectivity ServiceType = "Konnectivity"
	// OAuthServer is the login of OpenShift.
	OAuthServer ServiceType = "OAuthServer"
	// OIDC publishes the keys of service account tokens.
	OIDC ServiceType = "OIDC"
	// Ignition gives new nodes their configuration.
	Ignition ServiceType = "Ignition"
	// OVNSbDb is a database of old releases of OVN-Kubernetes.
	OVNSbDb ServiceType = "OVNSbDb"
)

// PublishingStrategyType is a way to publish a service.
//
// +kubebuilder:validation:Enum=LoadBalancer;NodePort;Route;None;S3
type PublishingStrategyType string

const (
	// LoadBalancer publishes by a Service of type LoadBalancer.
	LoadBalancer PublishingStrategyType = "LoadBalancer"
	// NodePort publishes on a port of every node of the management cluster.
	NodePort PublishingStrategyType = "NodePort"
	// Route publishes by an OpenShift Route of the management cluster.
	Route PublishingStrategyType = "Route"
	// None does not publish the service.
	None PublishingStrategyType = "None"
	// S3 publishes by a bucket (only OIDC).
	S3 PublishingStrategyType = "S3"
)

// ServicePublishingStrategy is how a service is published. A block may be given for the type that it belongs to only;
// nodePort must be given with type NodePort.
//
// +kubebuilder:validation:XValidation:rule=`(self.type == 'NodePort') == has(self.nodePort)`,message=`nodePort, with an address, is required when type is NodePort, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`!has(self.loadBalancer) || self.type == 'LoadBalancer'`,message=`loadBalancer is forbidden when type is not LoadBalancer`
// +kubebuilder:validation:XValidation:rule=`!has(self.route) || self.type == 'Route'`,message=`route is forbidden when type is not Route`
type ServicePublishingStrategy struct {
	// type is the way of publishing.
	// +required
	Type PublishingStrategyType `json:"type"`

	// nodePort goes with type NodePort.
	// +optional
	NodePort *NodePortPublishingStrategy `json:"nodePort,omitempty"`

	// loadBalancer goes with type LoadBalancer.
	// +optional
	LoadBalancer *LoadBalancerPublishingStrategy `json:"loadBalancer,omitempty"`

	// route goes with type Route.
	// +optional
	Route *RoutePublishingStrategy `json:"route,omitempty"`
}

// NodePortPublishingStrategy is where a node port is reached.
type NodePortPublishingStrategy struct {
	// address is a DNS name or IP address under which the nodes of the management cluster are reached. A DNS name or a
	// virtual address serves better than the address of one node. With a Kubernetes release it can be changed while the cluster
	// runs, and nodes migrate to the new one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	// +kubebuilder:validation:XValidation:rule=`isIP(self) || self.matches(r'^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$')`,message=`nodePort.address must be a DNS name or an IP address under which the nodes of the management cluster are reached`
	Address string `json:"address"`

	// port is the node port. Zero means that Kubernetes chooses one.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == 0 || (self >= 1024 && self <= 65535)`,message=`nodePort.port must be 0, so that one is chosen, or a node port of the management cluster: 30000 to 32767 unless it is set up otherwise, and never below 1024`
	Port int32 `json:"port,omitempty"`
}

// LoadBalancerPublishingStrategy is the name of a load balancer.
type LoadBalancerPublishingStrategy struct {
	// hostname is the DNS name of the service. Empty means the address that the load balancer gets.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$') && self.contains('.')`,message=`loadBalancer.hostname must be a fully qualified domain name, such as api.example.com`
	Hostname string `json:"hostname,omitempty"`
}

// RoutePublishingStrategy is the name of a Route.
type RoutePublishingStrategy struct {
	// hostname is the DNS name of the service. Empty means one under the management cluster's domain.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$') && self.contains('.')`,message=`route.hostname must be a fully qualified domain name, such as api.example.com`
	Hostname string `json:"hostname,omitempty"`
}
