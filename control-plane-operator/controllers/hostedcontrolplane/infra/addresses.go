// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

const (
	// MaxServed is the maximum number of addresses that are served at once, as in the schema.
	MaxServed = 8
	// defaultOverlap is how long distributed kubeconfigs with a previous address keep working, so that users can fetch new
	// ones.
	defaultOverlap = 24 * time.Hour
)

// Served returns the addresses that a control plane serves, first the one that nodes should use. If the status was
// written before it had this list, the result is derived from its endpoint. It is empty before the first address is
// published.
func Served(hcp *hyperv1.HostedControlPlane, ignitionHost string) []hyperv1.ServedAddress {
	endpoint := hcp.Status.ControlPlaneEndpoint
	if len(hcp.Status.ServedAddresses) > 0 || endpoint.Host == "" {
		return hcp.Status.ServedAddresses
	}
	kind := hyperv1.NodePort
	switch endpoint.Port {
	case APIPort:
		kind = hyperv1.LoadBalancer
	case routePort:
		kind = hyperv1.Route
	}
	return []hyperv1.ServedAddress{{Type: kind, Host: endpoint.Host, Port: endpoint.Port, IgnitionHost: ignitionHost, Since: metav1.NewTime(hcp.CreationTimestamp.Time)}}
}

// Wanted returns the desired address from the result of Reconcile.
func Wanted(hcp *hyperv1.HostedControlPlane, found *component.Infra) hyperv1.ServedAddress {
	strategy, _ := Strategy(hcp, hyperv1.APIServer)
	return hyperv1.ServedAddress{Type: strategy.Type, Host: found.API.Host, Port: found.API.Port, IgnitionHost: found.Ignition.Host}
}

// Same reports whether two addresses are equal, regardless of when they were published.
func Same(a, b hyperv1.ServedAddress) bool {
	a.Since, b.Since = metav1.Time{}, metav1.Time{}
	return a == b
}

// During returns the endpoints of the control plane while it migrates to a new address. Kubeconfigs and the guest use
// the published address, and certificates name all addresses.
func During(published hyperv1.APIEndpoint, served []hyperv1.ServedAddress, wanted ...hyperv1.ServedAddress) *component.Infra {
	all := slices.Concat(served, wanted)
	out := &component.Infra{
		API: component.Endpoint{Host: published.Host, Port: published.Port}, Ignition: component.Endpoint{Host: all[0].IgnitionHost},
	}
	for _, address := range all {
		out.APINames = with(out.APINames, address.Host, out.API.Host)
		out.IgnitionNames = with(out.IgnitionNames, address.IgnitionHost, out.Ignition.Host)
	}
	return out
}

// with adds a host to the list, unless the host is empty, equal to first or already in the list.
func with(hosts []string, host, first string) []string {
	if host == "" || host == first || slices.Contains(hosts, host) {
		return hosts
	}
	return append(hosts, host)
}

// Overlap returns the minimum time that a previous address is served.
func Overlap(hcp *hyperv1.HostedControlPlane) (time.Duration, error) {
	text, given := hcp.Annotations[hyperv1.AddressOverlapAnnotation]
	if !given {
		return defaultOverlap, nil
	}
	overlap, err := time.ParseDuration(text)
	if err != nil || overlap < 0 {
		return defaultOverlap, fmt.Errorf("annotation %s: %q is not a duration; write it as in 24h", hyperv1.AddressOverlapAnnotation, text)
	}
	return overlap, nil
}

// servedBy returns the served address of a type, and whether there is one.
func servedBy(hcp *hyperv1.HostedControlPlane, kind hyperv1.PublishingStrategyType) (hyperv1.ServedAddress, bool) {
	at := slices.IndexFunc(hcp.Status.ServedAddresses, func(a hyperv1.ServedAddress) bool { return a.Type == kind })
	if at < 0 {
		return hyperv1.ServedAddress{}, false
	}
	return hcp.Status.ServedAddresses[at], true
}
