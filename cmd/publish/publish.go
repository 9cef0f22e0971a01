// Package publish chooses how the services of a hosted cluster are reached from outside the management cluster.
package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// addressTypes are tried in this order.
var addressTypes = []corev1.NodeAddressType{corev1.NodeExternalDNS, corev1.NodeExternalIP, corev1.NodeInternalIP}

var errNoAddress = errors.New("the management cluster has no Ready node with an address; set --external-api-server-address")

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
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return "", fmt.Errorf("list the management cluster's nodes to find an address: %w; set --external-api-server-address", err)
	}
	slices.SortFunc(nodes.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, node := range nodes.Items {
		if !isReady(node) {
			continue
		}
		for _, wanted := range addressTypes {
			for _, address := range node.Status.Addresses {
				if address.Type == wanted && address.Address != "" {
					return address.Address, nil
				}
			}
		}
	}
	return "", errNoAddress
}

func isReady(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
