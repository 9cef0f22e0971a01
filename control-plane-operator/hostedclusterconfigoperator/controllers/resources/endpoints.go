// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	apiServiceName  = "kubernetes"
	apiPortName     = "https"
	skipMirrorLabel = "endpointslice.kubernetes.io/skip-mirror"
)

// applyEndpoints points the guest's kubernetes Service to the published address of the API. The API server cannot do
// that itself, since it only knows the address of its own pod.
func (r *Reconciler) applyEndpoints(ctx context.Context, s *scope) error {
	endpoint := s.hcp.Status.ControlPlaneEndpoint
	addresses, err := r.resolve(ctx, endpoint.Host)
	if err != nil {
		return err
	}
	if err := r.apply(ctx, apiEndpoints(addresses, endpoint.Port)); err != nil {
		return err
	}
	return r.apply(ctx, apiEndpointSlice(addresses, endpoint.Port))
}

// resolve returns the addresses of a host, sorted and of one IP family: an EndpointSlice can have only one.
func (r *Reconciler) resolve(ctx context.Context, host string) ([]string, error) {
	if net.ParseIP(host) != nil {
		return []string{host}, nil
	}
	found, err := r.Lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("resolving the published name of the API: %w", err)
	}
	var v4, v6 []string
	for _, text := range found {
		address, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		if address.Unmap().Is4() {
			v4 = append(v4, address.Unmap().String())
		} else {
			v6 = append(v6, address.String())
		}
	}
	if len(v4) == 0 {
		v4 = v6
	}
	if len(v4) == 0 {
		return nil, fmt.Errorf("the published name of the API, %s, has no address", host)
	}
	slices.Sort(v4)
	return slices.Compact(v4), nil
}

// apiEndpoints returns the same as Endpoints, the older kind, which some clients in guests still read.
//
//nolint:staticcheck // Deprecated, and yet what they read.
func apiEndpoints(addresses []string, port int32) *corev1.Endpoints {
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: apiPortName, Port: port, Protocol: corev1.ProtocolTCP}}}
	for _, address := range addresses {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: address})
	}
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: apiServiceName, Labels: map[string]string{skipMirrorLabel: "true"},
		},
		Subsets: []corev1.EndpointSubset{subset},
	}
}

func apiEndpointSlice(addresses []string, port int32) *discoveryv1.EndpointSlice {
	family := discoveryv1.AddressTypeIPv4
	if net.ParseIP(addresses[0]).To4() == nil {
		family = discoveryv1.AddressTypeIPv6
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: apiServiceName,
			Labels: map[string]string{discoveryv1.LabelServiceName: apiServiceName},
		},
		AddressType: family,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To(apiPortName), Port: ptr.To(port), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		})
	}
	return slice
}
