// SPDX-License-Identifier: Apache-2.0

// Package managementnetwork determines the addresses of the management cluster: its API server, nodes, pods and
// Services. Programs that call addresses chosen by tenants block these addresses.
package managementnetwork

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/addressguard"
)

// Addresses holds the addresses of a management cluster that its API reports. The lists are sorted.
type Addresses = addressguard.Addresses

// Read reads the addresses from the API. The live reader reads without a cache; nodes may read from one.
func Read(ctx context.Context, live, nodes client.Reader) (*Addresses, error) {
	found := &Addresses{}
	if err := readAPI(ctx, live, found); err != nil {
		return nil, err
	}
	if err := readNodes(ctx, nodes, found); err != nil {
		return nil, err
	}
	if err := readServices(ctx, live, found); err != nil {
		return nil, err
	}
	found.API, found.Nodes = sorted(found.API, netip.AddrPort.Compare), sorted(found.Nodes, netip.Addr.Compare)
	found.Pods, found.Services = sorted(found.Pods, netip.Prefix.Compare), sorted(found.Services, netip.Prefix.Compare)
	found.APIPorts = sorted(found.APIPorts, cmp.Compare[uint16])
	return found, nil
}

// sorted sorts and deduplicates a list: the API returns nodes in any order.
func sorted[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

func readAPI(ctx context.Context, live client.Reader, a *Addresses) error {
	slice, service := &discoveryv1.EndpointSlice{}, &corev1.Service{}
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}
	for _, obj := range []client.Object{slice, service} {
		if err := live.Get(ctx, key, obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading %T %s for the addresses of the management cluster's API server: %w", obj, key, err)
		}
	}
	for _, endpoint := range slice.Endpoints {
		for _, port := range slice.Ports {
			number := ptr.Deref(port.Port, 0)
			addAPI(a, endpoint.Addresses, number)
			a.APIPorts = append(a.APIPorts, uint16(number)) //nolint:gosec // The API server accepts no other ports.
		}
	}
	for _, port := range service.Spec.Ports {
		addAPI(a, service.Spec.ClusterIPs, port.Port)
	}
	return nil
}

// addAPI ignores hosts that are not addresses: a headless Service has "None".
func addAPI(a *Addresses, hosts []string, port int32) {
	for _, host := range hosts {
		if addr, err := netip.ParseAddr(host); err == nil {
			a.API = append(a.API, netip.AddrPortFrom(addr, uint16(port))) //nolint:gosec // The API server accepts no other ports.
		}
	}
}

func readNodes(ctx context.Context, reader client.Reader, a *Addresses) error {
	nodes := &corev1.NodeList{}
	if err := reader.List(ctx, nodes); err != nil {
		return fmt.Errorf("listing the nodes of the management cluster for their addresses: %w", err)
	}
	for i := range nodes.Items {
		for _, address := range nodes.Items[i].Status.Addresses {
			if addr, err := netip.ParseAddr(address.Address); err == nil {
				a.Nodes = append(a.Nodes, addr)
			}
		}
		a.Pods = append(a.Pods, prefixes(nodes.Items[i].Spec.PodCIDRs)...)
	}
	return nil
}

func readServices(ctx context.Context, live client.Reader, a *Addresses) error {
	ranges := &networkingv1.ServiceCIDRList{}
	err := live.List(ctx, ranges)
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("listing the ServiceCIDRs of the management cluster: %w", err)
	}
	for i := range ranges.Items {
		a.Services = append(a.Services, prefixes(ranges.Items[i].Spec.CIDRs)...)
	}
	return nil
}

func prefixes(texts []string) (parsed []netip.Prefix) {
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			parsed = append(parsed, prefix.Masked())
		}
	}
	return parsed
}
