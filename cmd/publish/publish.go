// SPDX-License-Identifier: Apache-2.0

// Package publish chooses how the services of a hosted cluster are reached from outside the management cluster.
package publish

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// NodePort publishes every service on ports of the management cluster's nodes, which are reached under address.
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

// LoadBalancedAPI publishes the API by a load balancer, which moves its address when a node dies, and the rest on ports of
// the management cluster's nodes: without it machines cannot be installed, but those that run do not need it.
func LoadBalancedAPI(address string) []hyperv1.ServicePublishingStrategyMapping {
	services := NodePort(address)
	for i := range services {
		if services[i].Service == hyperv1.APIServer {
			services[i].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
		}
	}
	return services
}

// LoadBalancer publishes the API by a load balancer, and the rest by Routes.
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
