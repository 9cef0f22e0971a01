// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
)

// Reader reads what every reconcile needs.
type Reader struct {
	Client    client.Client
	Clock     clock.PassiveClock
	Platforms registry.Registry
}

// Observe reads what every reconcile needs, including one that deletes. All of the objects may be missing.
func (r Reader) Observe(ctx context.Context, hc *hyperv1.HostedCluster) (*Scope, error) {
	s := NewScope(hc)
	s.Now = r.Clock.Now()
	s.Platform, s.PlatformServed = r.Platforms.For(s.HC.Spec.Platform.Type)
	why, err := tenancy.Namespace(ctx, r.Client, s.Namespace, s.Key())
	if s.Refused = why; err != nil || why != "" {
		return s, err
	}
	hcp := &hyperv1.HostedControlPlane{}
	key := client.ObjectKey{Namespace: s.Namespace, Name: s.HC.Name}
	err = r.Client.Get(ctx, key, hcp)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading HostedControlPlane %s: %w", key, err)
	}
	if err == nil {
		s.HCP = hcp
	}
	s.Pools, err = r.poolsOf(ctx, hc)
	return s, err
}

// poolsOf returns the NodePools of a cluster, sorted by name.
func (r Reader) poolsOf(ctx context.Context, hc *hyperv1.HostedCluster) ([]hyperv1.NodePool, error) {
	list := &hyperv1.NodePoolList{}
	if err := r.Client.List(ctx, list, client.InNamespace(hc.Namespace)); err != nil {
		return nil, fmt.Errorf("listing NodePools: %w", err)
	}
	pools := slices.DeleteFunc(list.Items, func(pool hyperv1.NodePool) bool { return pool.Spec.ClusterName != hc.Name })
	slices.SortFunc(pools, func(a, b hyperv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return pools, nil
}
