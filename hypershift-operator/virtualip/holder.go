// SPDX-License-Identifier: Apache-2.0

// Package virtualip lets one node of the management cluster hold addresses, under which the ports of all nodes are reached, and another
// one when that does not renew its Lease.
//
// Two nodes never hold an address at once: it goes before the Lease is given up, and each renewal has the kernel keep the address for
// less time than others wait for the Lease. So it also goes from a node whose process was killed, or stands still.
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

// MinLease is the shortest Lease: the kernel counts the life of an address in seconds, and looks a second late.
const MinLease = 6 * time.Second

// When an address is announced, in renewals: at first often, then as a reminder for who missed it.
const (
	announceFirst = 5
	announceEvery = 30
)

// errLate means that a Lease was renewed, or the address put on, too late for the address to go in time.
var errLate = errors.New("the renewal took too long")

// Network puts addresses on this node.
type Network interface {
	// Check says why this node cannot have the address now.
	Check(address netip.Addr) error
	// Hold puts it on for a lifetime, and tells whether it was not there.
	Hold(address netip.Addr, lifetime time.Duration) (added bool, err error)
	// Drop takes it off; that it is not there is no error.
	Drop(address netip.Addr) error
	// Announce tells the segment where it is.
	Announce(address netip.Addr) error
}

// Holder holds the addresses on this node while it has the Lease.
type Holder struct {
	Addresses []netip.Addr
	Network   Network
	// Lock is the Lease, with this node's name as identity.
	Lock resourcelock.Interface
	// Lease is how long others wait for a holder that does not renew; MinLease or more.
	Lease time.Duration
	// Checks must pass on a node that holds the addresses.
	Checks  []Check
	Metrics *Metrics
	Log     logr.Logger

	fit atomic.Bool
	// The rest belongs to the goroutine of the election.
	held     bool
	renewals int
	endTerm  context.CancelCauseFunc
}

// times are derived from the Lease, in the order in which they pass after a renewal that was the last.
type times struct {
	// retry is the time between renewals.
	retry time.Duration
	// deadline is how long a renewal is tried.
	deadline time.Duration
	// life is when the kernel takes the address off.
	life time.Duration
}

func (h *Holder) times() times {
	return times{retry: h.Lease / 6, deadline: h.Lease / 3, life: h.Lease * 2 / 3}
}

// Run stands for the Lease again and again, until the context ends. Then the address is off and the Lease given up.
func (h *Holder) Run(ctx context.Context) error {
	if h.Lease < MinLease {
		return fmt.Errorf("a lease of %s is too short: the least is %s", h.Lease, MinLease)
	}
	// What an earlier process left is not ours before we have the Lease.
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

// letOthersTry waits for a Lease's time before this node stands again after it gave up.
func (h *Holder) letOthersTry(ctx context.Context) {
	h.fit.Store(false)
	select {
	case <-ctx.Done():
	case <-time.After(h.Lease):
	}
}

// term waits for the Lease and holds the addresses until it is lost, or until this node gives up since it is not fit any more.
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
		return false, fmt.Errorf("standing for Lease %s: %w", h.Lock.Describe(), err)
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
	h.Log.Info("This node leaves the virtual IP to others", "reason", reason.Error())
	return true, nil
}

// renewed follows each renewal, which was asked for at a time.
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

// holdUntil has the kernel keep an address until a moment. The kernel is told of a time that is left: when this process stood still on the way,
// so that the address would outlive the Lease, it is told again, or the address goes.
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

// drop takes the addresses off. What fails goes by itself when its life ends.
func (h *Holder) drop(why string) {
	for _, address := range h.Addresses {
		if err := h.Network.Drop(address); err != nil {
			h.Log.Error(err, "The virtual IP stays until its life ends", "address", address.String())
		}
		h.Metrics.set(address, false)
	}
	if h.held {
		h.Log.Info("This node does not hold the virtual IP any more", "reason", why)
	}
	h.held, h.renewals = false, 0
}

// lock is a Lease whose renewals keep the addresses.
type lock struct {
	resourcelock.Interface
	holder *Holder
	// named is whom the Lease named when it was last read or written; empty for nobody.
	named string
}

// Get reads whom the Lease names.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.named = record.HolderIdentity
	}
	return record, raw, err
}

// Create takes a Lease that was not there.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	asked := time.Now()
	if err := l.Interface.Create(ctx, record); err != nil {
		return err
	}
	l.named = record.HolderIdentity
	l.holder.renewed(asked)
	return nil
}

// Update takes, renews or gives up the Lease. Before it is given up the addresses go: the next holder may be quick. It may even have the Lease by
// now, when this process stood still, and the election, which reads the Lease before it gives it up, does not look whose it is.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != l.Identity() {
		l.holder.drop("the lease is given up")
		if l.named != l.Identity() {
			return fmt.Errorf("the Lease %s is of %q by now, and not this node's to give up", l.Describe(), l.named)
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
