// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

const (
	ignitionServerName = "ignition-server"
	// ignitionProxyName is the Service in front of the ignition-server of an OpenShift payload. Machines connect to it.
	ignitionProxyName = "ignition-server-proxy"
	// routePoll is the interval between checks of a Route that has no host yet.
	routePoll = 10 * time.Second
)

// observeIgnition reads the status of the ignition-server. A read error leaves the last known endpoint.
func (r *Reconciler) observeIgnition(ctx context.Context, s *scope) error {
	s.ignitionEndpoint = s.HC.Status.IgnitionEndpoint
	deployment := &appsv1.Deployment{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: ignitionServerName}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Deployment %s/ignition-server: %w", s.Namespace, err)
	}
	if err == nil {
		s.ignitionServer = deployment
	}
	endpoint, err := r.ignitionEndpoint(ctx, s)
	if err == nil {
		s.ignitionEndpoint = endpoint
	}
	return err
}

// ignitionEndpoint returns the address at which machines fetch their configuration, host:port or a route's host; empty
// until it is known.
func (r *Reconciler) ignitionEndpoint(ctx context.Context, s *scope) (string, error) {
	switch strategy := strategyOf(s.HC.Spec.Services, hyperv1.Ignition); strategy.Type {
	case hyperv1.NodePort:
		return r.ignitionNodePort(ctx, s, strategy.NodePort)
	case hyperv1.Route:
		return r.ignitionRoute(ctx, s, strategy.Route)
	}
	return "", nil
}

func (r *Reconciler) ignitionNodePort(ctx context.Context, s *scope, strategy *hyperv1.NodePortPublishingStrategy) (string, error) {
	if strategy == nil {
		return "", nil
	}
	for _, name := range []string{ignitionProxyName, ignitionServerName} {
		service := &corev1.Service{}
		key := client.ObjectKey{Namespace: s.Namespace, Name: name}
		if err := r.Client.Get(ctx, key, service); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return "", fmt.Errorf("reading Service %s: %w", key, err)
			}
			continue
		}
		if len(service.Spec.Ports) > 0 && service.Spec.Ports[0].NodePort != 0 {
			return hostPort(s.ignitionHost(strategy.Address), service.Spec.Ports[0].NodePort), nil
		}
	}
	return "", nil
}

// ignitionHost returns the host in the ignition-server's current certificate. A different host in the spec takes effect
// later.
func (s *scope) ignitionHost(wanted string) string {
	if s.HCP != nil && len(s.HCP.Status.ServedAddresses) > 0 {
		return cmp.Or(s.HCP.Status.ServedAddresses[0].IgnitionHost, wanted)
	}
	return wanted
}

func (r *Reconciler) ignitionRoute(ctx context.Context, s *scope, strategy *hyperv1.RoutePublishingStrategy) (string, error) {
	if strategy != nil && strategy.Hostname != "" {
		return strategy.Hostname, nil
	}
	return r.routeHost(ctx, s.Namespace, ignitionServerName)
}

var routeKind = schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}

// routeHost returns the host of a Route; empty if there is none, or the management cluster has no Routes. It bypasses
// the cache, which would otherwise watch a kind that few management clusters have.
func (r *Reconciler) routeHost(ctx context.Context, namespace, name string) (string, error) {
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(routeKind)
	key := client.ObjectKey{Namespace: namespace, Name: name}
	err := r.LiveReader.Get(ctx, key, route)
	if meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil {
		host, _, _ := unstructured.NestedString(route.Object, "spec", "host")
		return host, nil
	}
	return "", fmt.Errorf("reading Route %s: %w", key, err)
}

// awaitRoute requeues while the ignition-server's Route has no host. Routes are not watched, because few management
// clusters have them.
func (r *Reconciler) awaitRoute(_ context.Context, s *scope) (ctrl.Result, error) {
	if strategyOf(s.HC.Spec.Services, hyperv1.Ignition).Type == hyperv1.Route && s.HC.Status.IgnitionEndpoint == "" {
		return ctrl.Result{RequeueAfter: routePoll}, nil
	}
	return ctrl.Result{}, nil
}

// ignitionAvailable reports whether machines can fetch their configuration: the server is available and its address is
// known.
func ignitionAvailable(s *scope) metav1.Condition {
	conditionType := string(hyperv1.IgnitionEndpointAvailable)
	if s.ignitionServer == nil {
		return condition.False(conditionType, hyperv1.NotFoundReason, "There is no ignition-server yet")
	}
	if s.ignitionEndpoint == "" {
		return condition.False(conditionType, hyperv1.WaitingForAvailableReason, s.unpublished())
	}
	for _, c := range s.ignitionServer.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue {
			return condition.True(conditionType, hyperv1.AsExpectedReason, "The ignition-server is available")
		}
	}
	return condition.False(conditionType, hyperv1.WaitingForAvailableReason, "The ignition-server is not available yet")
}

// unpublished describes what is missing for the address of the ignition-server.
func (s *scope) unpublished() string {
	switch strategy := strategyOf(s.HC.Spec.Services, hyperv1.Ignition); strategy.Type {
	case hyperv1.NodePort:
		return fmt.Sprintf("Machines cannot reach the ignition-server yet: neither of the Services %s and %s in namespace %s has a node port",
			ignitionProxyName, ignitionServerName, s.Namespace)
	case hyperv1.Route:
		return fmt.Sprintf("Machines cannot reach the ignition-server yet: Route %s in namespace %s is not there, or has no host", ignitionServerName, s.Namespace)
	default:
		return fmt.Sprintf("Machines cannot reach the ignition-server: spec.services cannot publish Ignition by %q; "+
			"use NodePort or Route", strategy.Type)
	}
}
