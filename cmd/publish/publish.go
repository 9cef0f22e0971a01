// SPDX-License-Identifier: Apache-2.0

// Package publish chooses how the services of a hosted cluster are reached from outside the management cluster.
package publish

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// NodePort publishes every service on ports of the management cluster's nodes, which are reachable at address.
func NodePort(address string) []hyperv1.ServicePublishingStrategyMapping {
	var services []hyperv1.ServicePublishingStrategyMapping
	for _, service := range []hyperv1.ServiceType{
		hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.OIDC, hyperv1.Konnectivity, hyperv1.Ignition,
	} {
		services = append(services, hyperv1.ServicePublishingStrategyMapping{
			Service: service,
			ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
				Type:     hyperv1.NodePort,
				NodePort: &hyperv1.NodePortPublishingStrategy{Address: address},
			},
		})
	}
	return services
}

// LoadBalancedAPI publishes the API through a load balancer, which moves its address when a node fails. The other
// services use ports of the management cluster's nodes. Machines need these ports for installation only; running
// machines do not need them.
func LoadBalancedAPI(address string) []hyperv1.ServicePublishingStrategyMapping {
	services := NodePort(address)
	for i := range services {
		if services[i].Service == hyperv1.APIServer {
			services[i].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
		}
	}
	return services
}

// LoadBalancer publishes the API through a load balancer, and the other services through Routes.
func LoadBalancer() []hyperv1.ServicePublishingStrategyMapping {
	services := []hyperv1.ServicePublishingStrategyMapping{{
		Service:                   hyperv1.APIServer,
		ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer},
	}}
	for _, service := range []hyperv1.ServiceType{hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		services = append(services, hyperv1.ServicePublishingStrategyMapping{
			Service:                   service,
			ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.Route},
		})
	}
	return services
}
