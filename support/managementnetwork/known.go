// SPDX-License-Identifier: Apache-2.0

package managementnetwork

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/addressguard"
)

// every is the interval between two refreshes of the addresses.
const every = time.Minute

// Known holds the addresses of the last refresh. The zero value has none; call Refresh before using it.
type Known struct {
	// WholeNodes is the field of the same name in Addresses.
	WholeNodes bool

	addresses atomic.Pointer[Addresses]
}

// Contains implements addressguard.Own.
func (k *Known) Contains(at netip.AddrPort) bool {
	known := k.addresses.Load()
	return known != nil && known.Contains(at)
}

// Kubernetes returns the part of the addresses where only Kubernetes serves: its API, and its ports on nodes. A registry
// may be a Service, or another port of a node.
func (k *Known) Kubernetes() addressguard.Own { return ofKubernetes{k} }

type ofKubernetes struct{ known *Known }

// Contains implements addressguard.Own.
func (o ofKubernetes) Contains(at netip.AddrPort) bool {
	known := o.known.addresses.Load()
	if known == nil {
		return false
	}
	part := known.WithoutWorkloads()
	part.WholeNodes = false
	return part.Contains(at)
}

// API returns the addresses of the management cluster's API server.
func (k *Known) API() []netip.AddrPort {
	if known := k.addresses.Load(); known != nil {
		return known.API
	}
	return nil
}

// Refresh reads the addresses. After an error, the previous addresses stay.
func (k *Known) Refresh(ctx context.Context, live, nodes client.Reader) error {
	found, err := Read(ctx, live, nodes)
	if err != nil {
		return err
	}
	found.WholeNodes = k.WholeNodes
	k.addresses.Store(found)
	return nil
}

// Refresher returns a runnable that refreshes the addresses each minute until its context ends. It runs without leader
// election.
func (k *Known) Refresher(live, nodes client.Reader, c clock.WithTicker) *Refresher {
	return &Refresher{known: k, live: live, nodes: nodes, clock: c}
}

// Refresher implements manager.Runnable.
type Refresher struct {
	known       *Known
	live, nodes client.Reader
	clock       clock.WithTicker
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Refresher) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (r *Refresher) Start(ctx context.Context) error {
	ticker := r.clock.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			if err := r.known.Refresh(ctx, r.live, r.nodes); err != nil {
				klog.FromContext(ctx).Error(err, "Cannot refresh the addresses of the management cluster; the last ones stay in force")
			}
		}
	}
}
