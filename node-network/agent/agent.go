// SPDX-License-Identifier: Apache-2.0

// Package agent keeps the network of one node in the state that the cluster's Node objects define.
package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/openshift/hypershift/node-network/host"
)

const (
	// resync is the interval of reconciles without a change of a node. They restore routes and rules that other programs
	// removed.
	resync = time.Minute
	// retry is the delay after a failure. It doubles up to resync while the failures continue.
	retry = 2 * time.Second
)

// Routes are the node's routes that the agent created.
type Routes interface {
	// List returns the agent's own routes only.
	List() ([]host.Route, error)
	// Replace creates a route; it replaces a route to the same network.
	Replace(host.Route) error
	// Delete removes a route; a missing route is no error.
	Delete(host.Route) error
	// MTU returns the MTU, in bytes, of the interface with the address.
	MTU(netip.Addr) (int, error)
}

// Masquerade translates the source address of pod traffic that leaves the cluster to the node's address.
type Masquerade interface {
	// Ensure writes the rules; it does nothing if they are up to date.
	Ensure(pods, cluster []netip.Prefix) error
}

// Config is the node's CNI configuration.
type Config interface {
	// Ensure writes the configuration; it does nothing if it is up to date.
	Ensure(host.CNI) error
}

// Agent configures the network of one node. All fields except Flannel are required.
type Agent struct {
	// NodeName is the name of the node.
	NodeName string
	// ClusterNetworks are the CIDRs of all pods.
	ClusterNetworks []netip.Prefix
	Config          Config
	Routes          Routes
	Masquerade      Masquerade
	// Flannel is true if Flannel runs beside the agent. The agent then writes routes only to nodes without Flannel.
	Flannel bool
}

// Run reconciles the node's network until the context ends.
func (a *Agent) Run(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trim))
	nodes := factory.Core().V1().Nodes()
	changed := make(chan struct{}, 1)
	if _, err := nodes.Informer().AddEventHandler(notify(changed)); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	lister := nodes.Lister()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for _, known := range factory.WaitForCacheSync(ctx.Done()) {
		if !known {
			return nil // The agent is stopping and does not know all nodes, so it removes no routes.
		}
	}
	return a.loop(ctx, lister, changed)
}

func (a *Agent) loop(ctx context.Context, nodes corelisters.NodeLister, changed <-chan struct{}) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := retry
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			pause = retry
		case <-timer.C:
		}
		if err := a.reconcile(nodes); err == nil {
			pause = retry
			timer.Reset(resync)
		} else if ctx.Err() == nil {
			klog.ErrorS(err, "cannot configure the node's network; retrying", "node", a.NodeName, "in", pause)
			timer.Reset(pause)
			pause = min(2*pause, resync)
		}
	}
}

// trim keeps only the fields that the agent reads. Heartbeats of a thousand nodes therefore cause no reconcile, and
// the cache needs little memory.
func trim(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Node{}
	trimmed.Name, trimmed.UID, trimmed.ResourceVersion = node.Name, node.UID, node.ResourceVersion
	if backend, ok := node.Annotations[flannelAnnotation]; ok {
		trimmed.Annotations = map[string]string{flannelAnnotation: backend}
	}
	trimmed.Spec.PodCIDR, trimmed.Spec.PodCIDRs = node.Spec.PodCIDR, node.Spec.PodCIDRs
	trimmed.Status.Addresses = node.Status.Addresses
	return trimmed, nil
}

func notify(changed chan<- struct{}) cache.ResourceEventHandlerFuncs {
	wake := func() {
		select {
		case changed <- struct{}{}:
		default: // A reconcile is already pending.
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { wake() },
		UpdateFunc: func(before, after any) {
			if !same(before, after) {
				wake()
			}
		},
		DeleteFunc: func(any) { wake() },
	}
}

func same(before, after any) bool {
	a, okA := before.(*corev1.Node)
	b, okB := after.(*corev1.Node)
	return okA && okB && hasFlannel(a) == hasFlannel(b) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Status, b.Status)
}

// reconcile updates the parts one by one. A failure of the routes does not prevent the other parts. The CNI
// configuration is last: once it exists, pods start, and they need the other parts.
func (a *Agent) reconcile(lister corelisters.NodeLister) error {
	nodes, err := lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	routed, others := a.split(nodes)
	desired := Desire(a.NodeName, routed)
	errs := append(slices.Clone(desired.Problems), a.reconcileRoutes(desired.Routes, Desire(a.NodeName, others).Routes))
	if len(desired.PodNetworks) == 0 {
		return errors.Join(append(errs, fmt.Errorf("node %s has no pod CIDR yet: the kube-controller-manager gives it one", a.NodeName))...)
	}
	if err := a.Masquerade.Ensure(desired.PodNetworks, a.ClusterNetworks); err != nil {
		return errors.Join(append(errs, err)...)
	}
	if err := a.checkFlannel(nodes); err != nil {
		return errors.Join(append(errs, err)...)
	}
	return errors.Join(append(errs, a.reconcileConfig(desired))...)
}

// reconcileRoutes replaces changed routes in one step, and removes routes that are neither desired nor kept.
func (a *Agent) reconcileRoutes(desired, kept []host.Route) error {
	existing, err := a.Routes.List()
	if err != nil {
		return err
	}
	var errs []error
	for _, route := range desired {
		if !slices.Contains(existing, route) {
			klog.InfoS("making a route", "to", route.To, "via", route.Via)
			errs = append(errs, a.Routes.Replace(route))
		}
	}
	for _, route := range existing {
		sameTo := func(other host.Route) bool { return other.To == route.To }
		if !slices.ContainsFunc(desired, sameTo) && !slices.ContainsFunc(kept, sameTo) {
			klog.InfoS("removing a route", "to", route.To, "via", route.Via)
			errs = append(errs, a.Routes.Delete(route))
		}
	}
	return errors.Join(errs...)
}

func (a *Agent) reconcileConfig(desired Desired) error {
	cni := host.CNI{PodNetworks: desired.PodNetworks}
	for _, address := range desired.Addresses {
		mtu, err := a.Routes.MTU(address)
		if err != nil {
			return err
		}
		if cni.MTU == 0 || mtu < cni.MTU {
			cni.MTU = mtu
		}
	}
	if a.Flannel && cni.MTU > 0 {
		cni.MTU -= overhead(desired.PodNetworks)
	}
	return a.Config.Ensure(cni)
}
