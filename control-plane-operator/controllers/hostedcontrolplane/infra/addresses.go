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
	// MaxServed is how many addresses are served at once, as the schema has it.
	MaxServed = 8
	// defaultOverlap is how long kubeconfigs that were handed out with a former address are good, for people to fetch others.
	defaultOverlap = 24 * time.Hour
)

// Served are the addresses that a control plane answers to, the one that nodes are to go by first. Those of a status that was written before it
// told of them are made of its endpoint; there is none before the first is published.
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

// Wanted is the address that the spec asks for, from what Reconcile found.
func Wanted(hcp *hyperv1.HostedControlPlane, found *component.Infra) hyperv1.ServedAddress {
	strategy, _ := Strategy(hcp, hyperv1.APIServer)
	return hyperv1.ServedAddress{Type: strategy.Type, Host: found.API.Host, Port: found.API.Port, IgnitionHost: found.Ignition.Host}
}

// Same tells whether two addresses are one and the same, whenever they were published.
func Same(a, b hyperv1.ServedAddress) bool {
	a.Since, b.Since = metav1.Time{}, metav1.Time{}
	return a == b
}

// During is what the control plane is made with while it goes over to another address: kubeconfigs and the guest have the published one, and
// certificates name all.
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

// with adds a host that is none of those yet.
func with(hosts []string, host, first string) []string {
	if host == "" || host == first || slices.Contains(hosts, host) {
		return hosts
	}
	return append(hosts, host)
}

// Overlap is how long a former address is served at least.
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

// servedBy tells whether an address of some type is served.
func servedBy(hcp *hyperv1.HostedControlPlane, kind hyperv1.PublishingStrategyType) (hyperv1.ServedAddress, bool) {
	at := slices.IndexFunc(hcp.Status.ServedAddresses, func(a hyperv1.ServedAddress) bool { return a.Type == kind })
	if at < 0 {
		return hyperv1.ServedAddress{}, false
	}
	return hcp.Status.ServedAddresses[at], true
}
