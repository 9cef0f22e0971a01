// Package publish chooses how the services of a hosted cluster are reached from outside the management cluster.
package publish

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/nodeaddress"
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

// FindAddress returns an address of the management cluster: that of its first Ready node by name.
func FindAddress(ctx context.Context, c client.Reader) (string, error) {
	address, err := nodeaddress.Find(ctx, c)
	if err != nil {
		return "", fmt.Errorf("%w; set --external-api-server-address", err)
	}
	return address, nil
}
