// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"context"
	"net"
	"strconv"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// TunnelService is the Service of the servers of the tunnel. It has the name that the service Konnectivity has with
	// an OpenShift payload.
	TunnelService = "konnectivity-server"
	// TunnelPort is the port of the servers, as Konnectivity has it.
	TunnelPort = 8091
)

// TunnelHost returns the host of the Route at which nodes reach the tunnel; empty if no Route publishes it. Routes
// select by the name in the TLS handshake, so agents ask for this name.
func TunnelHost(hcp *hyperv1.HostedControlPlane) string {
	strategy, ok := Strategy(hcp, hyperv1.Konnectivity)
	if !ok || strategy.Type != hyperv1.Route || strategy.Route == nil {
		return ""
	}
	return strategy.Route.Hostname
}

// Tunnel publishes the servers of the tunnel as spec.services wants Konnectivity. It returns the addresses as
// host:port. It returns none if no address is known yet, or if this management cluster cannot publish it so: the API
// server then reaches kubelets only.
func (r *Reconciler) Tunnel(ctx context.Context, hcp *hyperv1.HostedControlPlane) ([]string, error) {
	strategy, ok := r.tunnelStrategy(hcp)
	if !ok {
		return nil, r.NoTunnel(ctx, hcp)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: TunnelService}}
	_, err := upsert.Object(ctx, r.Client, service, func() error {
		shapeTunnelService(service, strategy)
		return controllerutil.SetControllerReference(hcp, service, r.Client.Scheme())
	})
	if err != nil {
		return nil, err
	}
	if err := r.reconcileTunnelRoute(ctx, hcp, strategy); err != nil {
		return nil, err
	}
	return tunnelAddresses(hcp, service, strategy), nil
}

// NoTunnel removes what Tunnel has published.
func (r *Reconciler) NoTunnel(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	meta := metav1.ObjectMeta{Namespace: hcp.Namespace, Name: TunnelService}
	_, err := upsert.Gone(ctx, r.Client, &corev1.Service{ObjectMeta: meta})
	if r.HasRoutes && err == nil {
		_, err = upsert.Gone(ctx, r.Client, &routev1.Route{ObjectMeta: meta})
	}
	return err
}

// tunnelStrategy returns how the tunnel is published, and whether this management cluster can do so.
func (r *Reconciler) tunnelStrategy(hcp *hyperv1.HostedControlPlane) (hyperv1.ServicePublishingStrategy, bool) {
	strategy, ok := Strategy(hcp, hyperv1.Konnectivity)
	err := r.validate(hyperv1.Konnectivity, strategy, hyperv1.NodePort, hyperv1.LoadBalancer, hyperv1.Route)
	return strategy, ok && err == nil
}

// shapeTunnelService sets the fields of the Service that the operator owns. It prefers no node: an agent connects until
// it has reached each server.
func shapeTunnelService(service *corev1.Service, strategy hyperv1.ServicePublishingStrategy) {
	if len(service.Spec.Ports) != 1 {
		service.Spec.Ports = make([]corev1.ServicePort, 1)
	}
	metav1.SetMetaDataLabel(&service.ObjectMeta, "app", APIService)
	port := &service.Spec.Ports[0]
	port.Name, port.Port, port.Protocol, port.TargetPort = "tunnel", TunnelPort, corev1.ProtocolTCP, intstr.FromInt32(TunnelPort)
	service.Spec.Selector = map[string]string{"app": APIService}
	if service.Spec.IPFamilyPolicy == nil {
		service.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack)
	}
	switch strategy.Type {
	case hyperv1.LoadBalancer:
		service.Spec.Type = corev1.ServiceTypeLoadBalancer
	case hyperv1.NodePort:
		service.Spec.Type = corev1.ServiceTypeNodePort
		if strategy.NodePort.Port != 0 {
			port.NodePort = strategy.NodePort.Port
		}
	default:
		service.Spec.Type = corev1.ServiceTypeClusterIP
		port.NodePort = 0
	}
}

func (r *Reconciler) reconcileTunnelRoute(ctx context.Context, hcp *hyperv1.HostedControlPlane,
	strategy hyperv1.ServicePublishingStrategy,
) error {
	if !r.HasRoutes {
		return nil
	}
	route := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: TunnelService}}
	if strategy.Type != hyperv1.Route || TunnelHost(hcp) == "" {
		_, err := upsert.Gone(ctx, r.Client, route)
		return err
	}
	_, err := upsert.Object(ctx, r.Client, route, func() error {
		ShapeRoute(route, TunnelService, TunnelHost(hcp))
		return controllerutil.SetControllerReference(hcp, route, r.Client.Scheme())
	})
	return err
}

// tunnelAddresses returns the addresses of the published Service. A node port is open at each address of the management
// cluster's nodes, so also at a load balancer's address that moves to another node when one fails.
func tunnelAddresses(hcp *hyperv1.HostedControlPlane, service *corev1.Service,
	strategy hyperv1.ServicePublishingStrategy,
) []string {
	switch strategy.Type {
	case hyperv1.NodePort:
		port := service.Spec.Ports[0].NodePort
		if port == 0 {
			return nil
		}
		hosts := []string{strategy.NodePort.Address}
		if _, balanced := servedBy(hcp, hyperv1.LoadBalancer); balanced {
			hosts = with(hosts, hcp.Status.ControlPlaneEndpoint.Host, "")
		}
		return joined(hosts, port)
	case hyperv1.LoadBalancer:
		if len(service.Status.LoadBalancer.Ingress) == 0 {
			return nil
		}
		return joined([]string{loadBalancerHost(service, strategy.LoadBalancer)}, TunnelPort)
	default:
		if host := TunnelHost(hcp); host != "" {
			return joined([]string{host}, routePort)
		}
		return nil
	}
}

func joined(hosts []string, port int32) []string {
	var addresses []string
	for _, host := range hosts {
		addresses = append(addresses, net.JoinHostPort(host, strconv.Itoa(int(port))))
	}
	return addresses
}
