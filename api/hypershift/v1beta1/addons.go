// SPDX-License-Identifier: Apache-2.0

package v1beta1

// KubeProxyMode is the way in which kube-proxy implements Services.
//
// +kubebuilder:validation:Enum=iptables;nftables;ipvs
type KubeProxyMode string

// AddonState selects whether a cluster runs an add-on.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type AddonState string

const (
	// AddonEnabled runs the add-on, if the release has its image.
	AddonEnabled AddonState = "Enabled"
	// AddonDisabled removes the add-on.
	AddonDisabled AddonState = "Disabled"
)

// AddonsSpec configures what a cluster brings besides Kubernetes. It needs a Kubernetes release.
type AddonsSpec struct {
	// dns configures CoreDNS.
	// +optional
	DNS DNSAddon `json:"dns,omitzero"`

	// kubeProxyMode is the way in which kube-proxy implements Services. nftables needs Linux 5.13 or later on the nodes;
	// ipvs needs the kernel's modules of IPVS. A change restarts kube-proxy node by node. Empty means iptables.
	// +optional
	KubeProxyMode KubeProxyMode `json:"kubeProxyMode,omitempty"`

	// metricsServer selects whether the cluster runs metrics-server, which answers kubectl top and autoscaling of pods.
	// It needs a release with the image metrics-server, and the tunnel. Choose Disabled to install one of your own. Empty
	// means Enabled.
	// +optional
	MetricsServer AddonState `json:"metricsServer,omitempty"`
}

// DNSAddon configures CoreDNS. A change restarts its pods one by one.
type DNSAddon struct {
	// upstreams answer names outside of the cluster, in this order. Empty means the name servers of the nodes.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +listType=set
	// +optional
	Upstreams []DNSServer `json:"upstreams,omitempty"`

	// stubDomains are domains that other name servers answer.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=domain
	// +optional
	StubDomains []StubDomain `json:"stubDomains,omitempty"`
}

// StubDomain is a domain that its own name servers answer.
type StubDomain struct {
	// domain is the DNS domain, e.g. "corp.example". Names below it belong to it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$')`,message=`addons.dns.stubDomains.domain must be a domain name in lower case, such as corp.example`
	// +kubebuilder:validation:XValidation:rule=`self != 'cluster.local' && !self.endsWith('.cluster.local')`,message=`addons.dns.stubDomains.domain must not be cluster.local, which the cluster answers`
	Domain string `json:"domain"`

	// servers answer the names of the domain, in this order.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +listType=set
	// +required
	Servers []DNSServer `json:"servers"`
}

// DNSServer is the address of a name server, with or without a port, e.g. "10.0.0.53", "10.0.0.53:5353" or
// "[2001:db8::53]:5353".
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=53
// +kubebuilder:validation:XValidation:rule=`isIP(self) || (self.matches(r'^[0-9.]+:[1-9][0-9]{0,4}$') && isIP(self.substring(0, self.lastIndexOf(':')))) || (self.matches(r'^\[[0-9a-fA-F:.]+\]:[1-9][0-9]{0,4}$') && isIP(self.substring(1, self.lastIndexOf(']'))))`,message=`name servers must be IP addresses with or without a port, such as 10.0.0.53 or 10.0.0.53:5353`
// +kubebuilder:validation:XValidation:rule=`isIP(self) || !self.matches(r':[0-9]{1,5}$') || int(self.substring(self.lastIndexOf(':') + 1)) <= 65535`,message=`the port of a name server must be at most 65535`
type DNSServer string
