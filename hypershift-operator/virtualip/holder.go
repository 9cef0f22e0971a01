// SPDX-License-Identifier: Apache-2.0

// Package virtualip assigns virtual IP addresses to one node of the management cluster. They lead to the ports of all
// nodes. If that node stops renewing its Lease, another node takes over the addresses.
//
// Two nodes never have an address at the same time. The holder removes it before it releases the Lease, and each
// renewal sets a lifetime in the kernel that is shorter than the Lease. So the address also disappears from a node
// whose process was killed or is stopped.
package virtualip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// MinLease is the shortest Lease duration: the kernel counts the lifetime of an address in seconds, and may expire it a
// second late.
const MinLease = 6 * time.Second

// Intervals between announcements of an address, in renewals: often at first, then as a reminder for hosts that missed
// it.
const (
	announceFirst = 5
	announceEvery = 30
)

// errLate means that the renewal of a Lease, or the assignment of the address, took too long for the address to expire
// in time.
var errLate = errors.New("the renewal took too long")

// Network manages addresses on this node.
type Network interface {
	// Check returns the reason why this node cannot have the address now; nil if it can.
	Check(address netip.Addr) error
	// Hold assigns the address for a lifetime, and reports whether it was not assigned before.
	Hold(address netip.Addr, lifetime time.Duration) (added bool, err error)
	// Drop removes the address; it is not an error if the address is not assigned.
	Drop(address netip.Addr) error
	// Announce announces the location of the address to the network segment.
	Announce(address netip.Addr) error
}

// Holder assigns the addresses to this node while it holds the Lease.
type Holder struct {
	Addresses []netip.Addr
	Network   Network
	// Lock is the Lease, with this node's name as identity.
	Lock resourcelock.Interface
	// Lease is the duration after which other nodes may take over an unrenewed Lease; at least MinLease.
	Lease time.Duration
	// Checks must pass on a node that has the addresses.
	Checks  []Check
	Metrics *Metrics
	Log     logr.Logger

	fit atomic.Bool
	// Only the leader election goroutine uses the other fields.
	held     bool
	renewals int
	endTerm  context.CancelCauseFunc
}

// times are derived from the Lease, in the order in which they elapse after the last renewal.
type times struct {
	// retry is the time between renewals.
	retry time.Duration
	// deadline is how long a renewal is retried.
	deadline time.Duration
	// life is when the kernel removes the address.
	life time.Duration
}

func (h *Holder) times() times {
	return times{retry: h.Lease / 6, deadline: h.Lease / 3, life: h.Lease * 2 / 3}
}

// Run competes for the Lease until the context ends. On return, the addresses are removed and the Lease is released.
func (h *Holder) Run(ctx context.Context) error {
	if h.Lease < MinLease {
		return fmt.Errorf("a lease of %s is too short: the minimum is %s", h.Lease, MinLease)
	}
	// Remove addresses of an earlier process: this node does not hold the Lease yet.
	h.drop("start")
	for h.becomeFit(ctx) {
		gaveUp, err := h.term(ctx)
		if err != nil {
			return err
		}
		if gaveUp {
			h.letOthersTry(ctx)
		}
	}
	return nil
}

// letOthersTry waits for the duration of a Lease after this node has released it because its checks fail.
func (h *Holder) letOthersTry(ctx context.Context) {
	h.fit.Store(false)
	select {
	case <-ctx.Done():
	case <-time.After(h.Lease):
	}
}

// term waits for the Lease and keeps the addresses until the Lease is lost or the checks fail. gaveUp reports that the
// checks failed.
func (h *Holder) term(ctx context.Context) (gaveUp bool, err error) {
	t := h.times()
	term, end := context.WithCancelCause(ctx)
	defer end(nil)
	h.endTerm = end
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &lock{Interface: h.Lock, holder: h}, LeaseDuration: h.Lease, RenewDeadline: t.deadline, RetryPeriod: t.retry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() { h.drop("the lease is lost") },
			OnNewLeader:      func(node string) { h.Log.Info("The virtual IP has a holder", "node", node) },
		},
	})
	if err != nil {
		return false, fmt.Errorf("competing for Lease %s: %w", h.Lock.Describe(), err)
	}
	guarded := make(chan struct{})
	go func() {
		defer close(guarded)
		h.guard(term, end)
	}()
	elector.Run(term)
	end(nil)
	<-guarded
	reason := context.Cause(term)
	if reason == nil || errors.Is(reason, context.Canceled) {
		return false, nil
	}
	h.Log.Info("Releasing the virtual IP", "reason", reason.Error())
	return true, nil
}

// renewed assigns the addresses after each renewal, which was requested at the given time.
func (h *Holder) renewed(asked time.Time) {
	for _, address := range h.Addresses {
		err := h.holdUntil(address, asked.Add(h.times().life))
		if errors.Is(err, errLate) {
			h.drop(err.Error())
			return
		}
		if err != nil {
			h.endTerm(err)
			return
		}
	}
	h.held = true
	h.renewals++
}

// holdUntil makes the kernel keep an address until a point in time. The kernel only accepts a remaining lifetime. If
// this process was stopped in between, the address could outlive the Lease. In that case, holdUntil sets the lifetime
// again, or returns errLate.
func (h *Holder) holdUntil(address netip.Addr, end time.Time) error {
	for {
		began := time.Now()
		life := end.Sub(began)
		if life < time.Second {
			return errLate
		}
		if err := h.hold(address, life); err != nil {
			return err
		}
		if time.Since(began) < h.times().retry/2 {
			return nil
		}
	}
}

func (h *Holder) hold(address netip.Addr, life time.Duration) error {
	added, err := h.Network.Hold(address, life)
	if err != nil {
		return err
	}
	if added {
		h.renewals = 0
		h.Log.Info("This node holds the virtual IP", "address", address.String())
		h.Metrics.set(address, true)
	}
	if h.renewals < announceFirst || h.renewals%announceEvery == 0 {
		return h.Network.Announce(address)
	}
	return nil
}

// drop removes the addresses. If the removal fails, the kernel removes the address at the end of its lifetime.
func (h *Holder) drop(why string) {
	for _, address := range h.Addresses {
		if err := h.Network.Drop(address); err != nil {
			h.Log.Error(err, "Removing the virtual IP failed; the kernel removes it at the end of its lifetime", "address", address.String())
		}
		h.Metrics.set(address, false)
	}
	if h.held {
		h.Log.Info("This node no longer holds the virtual IP", "reason", why)
	}
	h.held, h.renewals = false, 0
}

// lock is a Lease whose renewals extend the lifetime of the addresses.
type lock struct {
	resourcelock.Interface
	holder *Holder
	// named is the holder of the Lease when it was last read or written; empty if there is none.
	named string
}

// Get reads the Lease and records its holder.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.named = record.HolderIdentity
	}
	return record, raw, err
}

// Create creates the Lease with this node as its holder.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	asked := time.Now()
	if err := l.Interface.Create(ctx, record); err != nil {
		return err
	}
	l.named = record.HolderIdentity
	l.holder.renewed(asked)
	return nil
}

// Update takes, renews or releases the Lease. It removes the addresses before it releases the Lease, because the next
// holder may take over immediately. Another node may already hold the Lease if this process was stopped. The leader
// elector reads the Lease before it releases it, but does not check the holder, so Update does.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != l.Identity() {
		l.holder.drop("the Lease is being released")
		if l.named != l.Identity() {
			return fmt.Errorf("releasing Lease %s: it is now held by %q", l.Describe(), l.named)
		}
		return l.write(ctx, record)
	}
	asked := time.Now()
	if err := l.write(ctx, record); err != nil {
		return err
	}
	l.holder.renewed(asked)
	return nil
}

func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	if err == nil {
		l.named = record.HolderIdentity
	}
	return err
}
