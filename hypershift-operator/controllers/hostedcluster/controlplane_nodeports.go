// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"net"
	"strconv"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// keepNodePorts sets the allocated node ports in services if the user does not specify any. Kubeconfigs and the
// user-data of machines contain them, so a recreated Service must request the same ports. This also applies to Services
// that an operator of the payload creates. last are the services of the current HostedControlPlane.
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

// portOf returns the node port of a service in a list of services, or 0 if there is none. The port stays the same when
// the address changes: nodes reach the same Service at both addresses.
func portOf(services []hyperv1.ServicePublishingStrategyMapping, wanted hyperv1.ServicePublishingStrategyMapping) int32 {
	last := strategyOf(services, wanted.Service)
	if last.Type != hyperv1.NodePort || last.NodePort == nil {
		return 0
	}
	return last.NodePort.Port
}

// strategyOf returns the publishing strategy of a service; zero if the list does not contain the service.
func strategyOf(services []hyperv1.ServicePublishingStrategyMapping, wanted hyperv1.ServiceType) hyperv1.ServicePublishingStrategy {
	for _, s := range services {
		if s.Service == wanted {
			return s.ServicePublishingStrategy
		}
	}
	return hyperv1.ServicePublishingStrategy{}
}

// publishedPort returns the port of a service at an address according to the cluster's status; 0 if the status has
// none.
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
