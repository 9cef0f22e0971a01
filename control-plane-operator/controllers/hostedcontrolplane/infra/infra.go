// SPDX-License-Identifier: Apache-2.0

// Package infra publishes the endpoints of a hosted control plane and finds the addresses and ports at which they can
// be reached. All other phases wait for it: the addresses are in certificates and kubeconfigs.
package infra

import (
	"context"
	"fmt"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// APIService is the Service of the hosted API server.
	APIService = "kube-apiserver"
	// APIPort is the port of the hosted API server's Service and pods.
	APIPort = 6443
	// IgnitionService is the Service of the ignition-server, which its component creates.
	IgnitionService = "ignition-server"

	routePort              = 443
	externalDNSAnnotation  = "external-dns.alpha.kubernetes.io/hostname"
	routeHostnameMaxLength = 63
)

// Reconciler publishes endpoints in the management cluster.
type Reconciler struct {
	// Client writes to the management cluster.
	Client client.Client
	// HasRoutes reports whether the management cluster has OpenShift's Route API.
	HasRoutes bool
	// IngressDomain is the domain of Routes without a host; empty if unknown.
	IngressDomain string
	// SameNode reports whether Services of the management cluster can prefer pods on the node that receives the
	// connection, as in Kubernetes 1.35.
	SameNode bool
}

// Result is the result of a reconcile.
type Result struct {
	// Infra is set when every endpoint is known.
	Infra *component.Infra
	// Waiting says what is not known yet; empty when Infra is set.
	Waiting string
}

// Strategy returns the publishing strategy of a service of the control plane, and whether the cluster specifies it.
func Strategy(hcp *hyperv1.HostedControlPlane, service hyperv1.ServiceType) (hyperv1.ServicePublishingStrategy, bool) {
	for _, mapping := range hcp.Spec.Services {
		if mapping.Service == service {
			return mapping.ServicePublishingStrategy, true
		}
	}
	return hyperv1.ServicePublishingStrategy{}, false
}

// Validate returns the publishing strategies that cannot work here, as a message for the user; nil if all can.
func (r *Reconciler) Validate(hcp *hyperv1.HostedControlPlane) error {
	api, ok := Strategy(hcp, hyperv1.APIServer)
	if !ok {
		return fmt.Errorf("spec.services has no entry for %s; add one of type NodePort, LoadBalancer or Route", hyperv1.APIServer)
	}
	if err := r.validate(hyperv1.APIServer, api, hyperv1.NodePort, hyperv1.LoadBalancer, hyperv1.Route); err != nil {
		return err
	}
	if api.Type == hyperv1.Route && (api.Route == nil || api.Route.Hostname == "") {
		return fmt.Errorf("service %s is published by a Route without a hostname; set route.hostname", hyperv1.APIServer)
	}
	ignition, ok := Strategy(hcp, hyperv1.Ignition)
	if !ok {
		return nil
	}
	return r.validate(hyperv1.Ignition, ignition, hyperv1.NodePort, hyperv1.Route)
}

func (r *Reconciler) validate(service hyperv1.ServiceType, s hyperv1.ServicePublishingStrategy, allowed ...hyperv1.PublishingStrategyType) error {
	known := false
	for _, t := range allowed {
		known = known || t == s.Type
	}
	switch {
	case !known:
		return fmt.Errorf("service %s cannot be published by %q; use one of %v", service, s.Type, allowed)
	case s.Type == hyperv1.Route && !r.HasRoutes:
		return fmt.Errorf("service %s is to be published by a Route, which this management cluster does not have; use NodePort or LoadBalancer", service)
	case s.Type == hyperv1.NodePort && (s.NodePort == nil || s.NodePort.Address == ""):
		return fmt.Errorf("service %s is published by NodePort without an address; set nodePort.address to an address of the management cluster that machines reach", service)
	default:
		return nil
	}
}

// Reconcile creates the Services and Routes and resolves their addresses. hcp must be valid.
func (r *Reconciler) Reconcile(ctx context.Context, hcp *hyperv1.HostedControlPlane) (Result, error) {
	strategy, _ := Strategy(hcp, hyperv1.APIServer)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: APIService}}
	_, err := upsert.Object(ctx, r.Client, service, func() error {
		if err := controllerutil.SetControllerReference(hcp, service, r.Client.Scheme()); err != nil {
			return err
		}
		shapeAPIService(service, strategy, hcp)
		r.distribute(service, hcp)
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	if err := r.reconcileRoute(ctx, hcp, strategy); err != nil {
		return Result{}, err
	}
	api, waiting := apiEndpoint(service, strategy)
	if waiting != "" {
		return Result{Waiting: waiting}, nil
	}
	return Result{Infra: &component.Infra{API: api, Ignition: component.Endpoint{Host: r.ignitionHost(hcp)}}}, nil
}

// Published returns the last result of Reconcile from the status of a control plane. An address must have been
// published.
func (r *Reconciler) Published(hcp *hyperv1.HostedControlPlane) *component.Infra {
	return During(hcp.Status.ControlPlaneEndpoint, r.Served(hcp))
}

// Served returns the addresses that a control plane serves, first the one that nodes should use.
func (r *Reconciler) Served(hcp *hyperv1.HostedControlPlane) []hyperv1.ServedAddress {
	return Served(hcp, r.ignitionHost(hcp))
}

// shapeAPIService sets the fields of the Service that the operator owns and keeps the server's allocations.
func shapeAPIService(service *corev1.Service, strategy hyperv1.ServicePublishingStrategy, hcp *hyperv1.HostedControlPlane) {
	if len(service.Spec.Ports) != 1 {
		service.Spec.Ports = make([]corev1.ServicePort, 1)
	}
	metav1.SetMetaDataLabel(&service.ObjectMeta, "app", APIService)
	port := &service.Spec.Ports[0]
	port.Name, port.Port, port.Protocol, port.TargetPort = "client", APIPort, corev1.ProtocolTCP, intstr.FromString("client")
	service.Spec.Selector = map[string]string{"app": APIService}
	if service.Spec.IPFamilyPolicy == nil {
		service.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack)
	}
	if wanted := wantedNodePort(strategy, hcp); wanted != 0 {
		port.NodePort = wanted
	}
	// A load balancer that may still be in use stays, even if the user now publishes a node port. Its Service has a node
	// port too.
	_, balanced := servedBy(hcp, hyperv1.LoadBalancer)
	switch {
	case strategy.Type == hyperv1.LoadBalancer, strategy.Type == hyperv1.NodePort && balanced:
		service.Spec.Type = corev1.ServiceTypeLoadBalancer
		shapeLoadBalancer(service, strategy.LoadBalancer, hcp)
	case strategy.Type == hyperv1.NodePort:
		service.Spec.Type = corev1.ServiceTypeNodePort
	default:
		service.Spec.Type = corev1.ServiceTypeClusterIP
		port.NodePort = 0
	}
}

// distribute prefers the API server on the node that receives the connection, if it has one. A connection to an API
// server on a second node depends on both nodes. If the second node loses power or network, the client gets no error:
// Go's clients only close such a connection after 45 seconds.
func (r *Reconciler) distribute(service *corev1.Service, hcp *hyperv1.HostedControlPlane) {
	if r.SameNode && hcp.Spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable {
		service.Spec.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferSameNode)
	}
}

// wantedNodePort returns the port that the user sets, or else the previously published one. Kubeconfigs and kubelets
// contain that port, so a Service that is created again requests it again. Zero leaves the choice to the management
// cluster.
func wantedNodePort(strategy hyperv1.ServicePublishingStrategy, hcp *hyperv1.HostedControlPlane) int32 {
	if strategy.NodePort != nil && strategy.NodePort.Port != 0 {
		return strategy.NodePort.Port
	}
	if former, served := servedBy(hcp, hyperv1.NodePort); served {
		return former.Port
	}
	if published := hcp.Status.ControlPlaneEndpoint; strategy.NodePort != nil && strategy.NodePort.Address == published.Host {
		return published.Port
	}
	return 0
}

func shapeLoadBalancer(service *corev1.Service, lb *hyperv1.LoadBalancerPublishingStrategy, hcp *hyperv1.HostedControlPlane) {
	if names := balancedNames(service, lb, hcp); names != "" {
		metav1.SetMetaDataAnnotation(&service.ObjectMeta, externalDNSAnnotation, names)
	}
	service.Spec.LoadBalancerSourceRanges = nil
	if hcp.Spec.Networking.APIServer == nil {
		return
	}
	for _, block := range hcp.Spec.Networking.APIServer.AllowedCIDRBlocks {
		service.Spec.LoadBalancerSourceRanges = append(service.Spec.LoadBalancerSourceRanges, string(block))
	}
}

// balancedNames returns the desired name, and the previous names for ExternalDNS that may still be in use.
func balancedNames(service *corev1.Service, lb *hyperv1.LoadBalancerPublishingStrategy, hcp *hyperv1.HostedControlPlane) string {
	var names []string
	if lb != nil && lb.Hostname != "" {
		names = append(names, lb.Hostname)
	}
	for name := range strings.SplitSeq(service.Annotations[externalDNSAnnotation], ",") {
		if slices.ContainsFunc(hcp.Status.ServedAddresses, func(a hyperv1.ServedAddress) bool { return a.Host == name }) {
			names = with(names, name, "")
		}
	}
	return strings.Join(names, ",")
}

// apiEndpoint returns the published address, or what is missing.
func apiEndpoint(service *corev1.Service, strategy hyperv1.ServicePublishingStrategy) (component.Endpoint, string) {
	switch strategy.Type {
	case hyperv1.NodePort:
		port := service.Spec.Ports[0].NodePort
		if port == 0 {
			return component.Endpoint{}, fmt.Sprintf("Service %s has no node port yet", service.Name)
		}
		return component.Endpoint{Host: strategy.NodePort.Address, Port: port}, ""
	case hyperv1.LoadBalancer:
		if len(service.Status.LoadBalancer.Ingress) == 0 {
			return component.Endpoint{}, fmt.Sprintf("Load balancer of Service %s is not provisioned yet", service.Name)
		}
		return component.Endpoint{Host: loadBalancerHost(service, strategy.LoadBalancer), Port: APIPort}, ""
	default:
		return component.Endpoint{Host: strategy.Route.Hostname, Port: routePort}, ""
	}
}

func loadBalancerHost(service *corev1.Service, lb *hyperv1.LoadBalancerPublishingStrategy) string {
	if lb != nil && lb.Hostname != "" {
		return lb.Hostname
	}
	ingress := service.Status.LoadBalancer.Ingress[0]
	if ingress.Hostname != "" {
		return ingress.Hostname
	}
	return ingress.IP
}

// reconcileRoute creates the Route of the API server, or deletes one that is no longer desired.
func (r *Reconciler) reconcileRoute(ctx context.Context, hcp *hyperv1.HostedControlPlane, strategy hyperv1.ServicePublishingStrategy) error {
	if !r.HasRoutes {
		return nil
	}
	route := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: APIService}}
	if strategy.Type != hyperv1.Route {
		_, err := upsert.Gone(ctx, r.Client, route)
		return err
	}
	_, err := upsert.Object(ctx, r.Client, route, func() error {
		if err := controllerutil.SetControllerReference(hcp, route, r.Client.Scheme()); err != nil {
			return err
		}
		ShapeRoute(route, APIService, strategy.Route.Hostname)
		return nil
	})
	return err
}

// ShapeRoute sets a Route that passes TLS through to a Service under host.
func ShapeRoute(route *routev1.Route, service, host string) {
	route.Spec.Host = host
	route.Spec.To.Kind, route.Spec.To.Name = "Service", service
	route.Spec.TLS = &routev1.TLSConfig{
		Termination:                   routev1.TLSTerminationPassthrough,
		InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyNone,
	}
}

// ignitionHost returns the host at which machines reach the ignition-server; its certificate names that host.
func (r *Reconciler) ignitionHost(hcp *hyperv1.HostedControlPlane) string {
	strategy, ok := Strategy(hcp, hyperv1.Ignition)
	if !ok {
		return ""
	}
	if strategy.Type == hyperv1.NodePort {
		return strategy.NodePort.Address
	}
	if strategy.Route != nil && strategy.Route.Hostname != "" {
		return strategy.Route.Hostname
	}
	return r.defaultHost(hcp.Namespace)
}

// defaultHost returns a host in the management cluster's ingress domain. A DNS label has at most 63 characters.
func (r *Reconciler) defaultHost(namespace string) string {
	if r.IngressDomain == "" {
		return ""
	}
	label := IgnitionService + "-" + namespace
	if len(label) > routeHostnameMaxLength {
		label = strings.TrimRight(label[:routeHostnameMaxLength], "-")
	}
	return label + "." + r.IngressDomain
}
