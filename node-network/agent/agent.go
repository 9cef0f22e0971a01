// SPDX-License-Identifier: Apache-2.0

// Package agent keeps the network of one node as the cluster's Node objects say.
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
	// resync is how often the node is looked at although nothing changed: somebody may have removed a route or rule.
	resync = time.Minute
	// retry is the pause after something failed; it doubles up to resync while it goes on failing.
	retry = 2 * time.Second
)

// Routes are those of the node that the agent made.
type Routes interface {
	// List returns the agent's own routes only.
	List() ([]host.Route, error)
	// Replace makes a route; one to the same network is replaced.
	Replace(host.Route) error
	// Delete removes a route; one that is gone is no error.
	Delete(host.Route) error
	// MTU is that of the interface which has the address, in bytes.
	MTU(netip.Addr) (int, error)
}

// Masquerade gives what pods send out of the cluster the node's address.
type Masquerade interface {
	// Ensure makes the rules what they must be; it does nothing if they are.
	Ensure(pods, cluster []netip.Prefix) error
}

// Config is the node's CNI configuration.
type Config interface {
	// Ensure writes the configuration; it does nothing if it is there.
	Ensure(host.CNI) error
}

// Agent works for one node. All fields are needed.
type Agent struct {
	// NodeName is the name of the node.
	NodeName string
	// ClusterNetworks are the CIDRs of all pods.
	ClusterNetworks []netip.Prefix
	Config          Config
	Routes          Routes
	Masquerade      Masquerade
}

// Run keeps the node's network until the context ends.
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
			return nil // It is to end. Nodes that it was not told of yet are not gone, and their routes stay.
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
			klog.ErrorS(err, "the node's network is not what it must be; trying again", "node", a.NodeName, "in", pause)
			timer.Reset(pause)
			pause = min(2*pause, resync)
		}
	}
}

// trim keeps only what the agent reads, so that the heartbeats of a thousand nodes wake nobody and cost little memory.
func trim(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Node{}
	trimmed.Name, trimmed.UID, trimmed.ResourceVersion = node.Name, node.UID, node.ResourceVersion
	trimmed.Spec.PodCIDR, trimmed.Spec.PodCIDRs = node.Spec.PodCIDR, node.Spec.PodCIDRs
	trimmed.Status.Addresses = node.Status.Addresses
	return trimmed, nil
}

func notify(changed chan<- struct{}) cache.ResourceEventHandlerFuncs {
	wake := func() {
		select {
		case changed <- struct{}{}:
		default: // the loop is about to look anyway
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
	return okA && okB && equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Status, b.Status)
}

// reconcile does the parts one by one; a failing one does not keep the others from being done. The CNI configuration is
// last: once it is there, pods are started, and they need the rest.
func (a *Agent) reconcile(lister corelisters.NodeLister) error {
	nodes, err := lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	desired := Desire(a.NodeName, nodes)
	errs := append(slices.Clone(desired.Problems), a.reconcileRoutes(desired.Routes))
	if len(desired.PodNetworks) == 0 {
		return errors.Join(append(errs, fmt.Errorf("node %s has no pod CIDR yet: the kube-controller-manager gives it one", a.NodeName))...)
	}
	if err := a.Masquerade.Ensure(desired.PodNetworks, a.ClusterNetworks); err != nil {
		return errors.Join(append(errs, err)...)
	}
	return errors.Join(append(errs, a.reconcileConfig(desired))...)
}

// reconcileRoutes replaces in one step what leads elsewhere now, and removes what leads nowhere any more.
func (a *Agent) reconcileRoutes(desired []host.Route) error {
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
		wanted := slices.ContainsFunc(desired, func(d host.Route) bool { return d.To == route.To })
		if !wanted {
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
	return a.Config.Ensure(cni)
}
