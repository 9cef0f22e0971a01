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
)

// Addresses holds the addresses of a management cluster that its API reports. The lists are sorted.
type Addresses struct {
	// API has the addresses of the API server, both of its Service and of its endpoints.
	API []netip.AddrPort `json:"api,omitempty"`
	// APIPorts has the ports of the API server's endpoints, which may be open on other nodes too.
	APIPorts []uint16 `json:"apiPorts,omitempty"`
	// Nodes has the internal and external addresses of the nodes.
	Nodes []netip.Addr `json:"nodes,omitempty"`
	// Pods has the pod ranges of the nodes; a network plugin may use others.
	Pods []netip.Prefix `json:"pods,omitempty"`
	// Services has the ranges of Services. Clusters before Kubernetes 1.33 do not report them.
	Services []netip.Prefix `json:"services,omitempty"`
	// WholeNodes extends Contains to every port of the nodes, not just those of Kubernetes. Read does not set it.
	WholeNodes bool `json:"wholeNodes,omitempty"`
}

// nodePorts lists the ports of Kubernetes components on a node: etcd, kubelet, kube-proxy, controller-manager,
// scheduler.
var nodePorts = []uint16{2379, 2380, 2381, 10249, 10250, 10255, 10256, 10257, 10259}

// Contains reports whether an address belongs to the management cluster. Of a node, only the ports of Kubernetes do: a
// MAAS or another cluster may share a host with it.
func (a *Addresses) Contains(at netip.AddrPort) bool {
	host := at.Addr().Unmap()
	for _, prefix := range slices.Concat(a.Pods, a.Services) {
		if prefix.Contains(host) {
			return true
		}
	}
	if slices.ContainsFunc(a.API, func(api netip.AddrPort) bool { return api.Port() == at.Port() && api.Addr().Unmap() == host }) {
		return true
	}
	if !slices.ContainsFunc(a.Nodes, func(node netip.Addr) bool { return node.Unmap() == host }) {
		return false
	}
	return a.WholeNodes || slices.Contains(nodePorts, at.Port()) || slices.Contains(a.APIPorts, at.Port())
}

// Read reads the addresses from the API. The live reader reads without a cache; nodes may read from one.
func Read(ctx context.Context, live, nodes client.Reader) (*Addresses, error) {
	found := &Addresses{}
	if err := found.readAPI(ctx, live); err != nil {
		return nil, err
	}
	if err := found.readNodes(ctx, nodes); err != nil {
		return nil, err
	}
	if err := found.readServices(ctx, live); err != nil {
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

func (a *Addresses) readAPI(ctx context.Context, live client.Reader) error {
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
			a.addAPI(endpoint.Addresses, number)
			a.APIPorts = append(a.APIPorts, uint16(number)) //nolint:gosec // The API server accepts no other ports.
		}
	}
	for _, port := range service.Spec.Ports {
		a.addAPI(service.Spec.ClusterIPs, port.Port)
	}
	return nil
}

// addAPI ignores hosts that are not addresses: a headless Service has "None".
func (a *Addresses) addAPI(hosts []string, port int32) {
	for _, host := range hosts {
		if addr, err := netip.ParseAddr(host); err == nil {
			a.API = append(a.API, netip.AddrPortFrom(addr, uint16(port))) //nolint:gosec // The API server accepts no other ports.
		}
	}
}

func (a *Addresses) readNodes(ctx context.Context, reader client.Reader) error {
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

func (a *Addresses) readServices(ctx context.Context, live client.Reader) error {
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
