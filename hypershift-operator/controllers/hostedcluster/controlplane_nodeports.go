// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"net"
	"strconv"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// keepNodePorts names in services the node ports that the cluster has got, where its user leaves them open. Kubeconfigs
// and the user-data of machines hold them, so a Service that is made anew, also by an operator of the payload, must ask for
// the same. last are the services of the HostedControlPlane as it is.
func keepNodePorts(services, last []hyperv1.ServicePublishingStrategyMapping, status hyperv1.HostedClusterStatus) {
	for i := range services {
		strategy := services[i].ServicePublishingStrategy
		if strategy.Type != hyperv1.NodePort || strategy.NodePort == nil || strategy.NodePort.Port != 0 {
			continue
		}
		if strategy.NodePort.Port = portOf(last, services[i]); strategy.NodePort.Port == 0 {
			strategy.NodePort.Port = publishedPort(services[i].Service, strategy.NodePort.Address, status)
		}
	}
}

// portOf is the port that a service has in a list of services. It stays when the address changes: nodes come to the same Service by both.
func portOf(services []hyperv1.ServicePublishingStrategyMapping, wanted hyperv1.ServicePublishingStrategyMapping) int32 {
	last := strategyOf(services, wanted.Service)
	if last.Type != hyperv1.NodePort || last.NodePort == nil {
		return 0
	}
	return last.NodePort.Port
}

// strategyOf is how a service is published; zero where the list has none of it.
func strategyOf(services []hyperv1.ServicePublishingStrategyMapping, wanted hyperv1.ServiceType) hyperv1.ServicePublishingStrategy {
	for _, s := range services {
		if s.Service == wanted {
			return s.ServicePublishingStrategy
		}
	}
	return hyperv1.ServicePublishingStrategy{}
}

// publishedPort is the port that the cluster's status tells of a service at an address; zero when it tells of none.
func publishedPort(service hyperv1.ServiceType, address string, status hyperv1.HostedClusterStatus) int32 {
	switch service {
	case hyperv1.APIServer:
		if status.ControlPlaneEndpoint.Host == address {
			return status.ControlPlaneEndpoint.Port
		}
	case hyperv1.Ignition:
		host, text, err := net.SplitHostPort(status.IgnitionEndpoint)
		if err != nil || host != address {
			return 0
		}
		if port, err := strconv.ParseInt(text, 10, 32); err == nil {
			return int32(port)
		}
	}
	return 0
}
