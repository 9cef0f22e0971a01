// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/openshift/hypershift/support/maas"
)

const (
	// mostAtOnce is the maximum number of machines in one call. MAAS takes about 25 ms to render one.
	mostAtOnce = 50
	// pollRest limits how often known machines are read. After a read, there is a pause of this multiple of the
	// duration of the read. Polling thus occupies at most a quarter of one MAAS worker. It slows down when MAAS is
	// slow or busy.
	pollRest = 3
	// forgetAfter is how long an unused machine stays in the cache.
	forgetAfter = time.Hour
)

// entry is a cached machine, and how it is used.
type entry struct {
	// machine is nil if it is unknown; at is the time of the read.
	machine *maas.Machine
	at      time.Time
	// maxAge is the maximum age that the last caller accepted.
	maxAge time.Duration
	asked  time.Time
}

// polled reports whether the machine is requested regularly.
func (e *entry) polled(now time.Time) bool {
	return !e.asked.IsZero() && now.Sub(e.asked) <= 2*e.maxAge+time.Minute
}

// due reports whether the machine needs a read now or soon. Reading early lets one call serve several machines.
func (e *entry) due(now time.Time) bool {
	return e.polled(now) && (e.machine == nil || now.Sub(e.at) >= e.maxAge*3/4)
}

// Machine returns a machine, at most maxAge old, or older if MAAS is slow. If MAAS does not have the machine,
// maas.IsNotFound matches the error. One call reads the machine and all others that are due.
func (i *Inventory) Machine(ctx context.Context, systemID string, maxAge time.Duration) (*maas.Machine, error) {
	if m := i.fresh(systemID, maxAge); m != nil {
		return m, nil
	}
	if err := i.polls.enter(ctx); err != nil {
		return nil, err
	}
	defer i.polls.leave()
	if m := i.fresh(systemID, maxAge); m != nil {
		return m, nil // Another caller has read it.
	}
	if err := i.polls.failed(); err != nil {
		return nil, err
	}
	began := i.clock.Now()
	err := i.read(ctx, i.due(systemID), began)
	i.polls.note(began, err)
	if err != nil {
		return nil, err
	}
	if m := i.known(systemID); m != nil {
		return m, nil
	}
	// A missing list entry is not proof, so read the machine itself.
	m, err := i.api.GetMachine(ctx, systemID)
	if err != nil {
		return nil, err
	}
	i.Store(m)
	return m, nil
}

// fresh records a request for a machine. It returns the cached machine if it is fresh enough, or if reads are paused.
func (i *Inventory) fresh(systemID string, maxAge time.Duration) *maas.Machine {
	i.mu.Lock()
	defer i.mu.Unlock()
	now, e := i.clock.Now(), i.entry(systemID)
	e.asked, e.maxAge = now, maxAge
	if now.Sub(e.at) < maxAge || now.Before(i.resume) {
		return e.machine
	}
	return nil
}

// entry returns the cache entry of a machine. The caller must hold mu.
func (i *Inventory) entry(systemID string) *entry {
	e, ok := i.machines[systemID]
	if !ok {
		e = &entry{}
		i.machines[systemID] = e
	}
	return e
}

// due returns this machine and all other machines that are due, the oldest data first, at most as many as one call
// may read.
func (i *Inventory) due(systemID string) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	now, others := i.clock.Now(), []string{}
	for id, e := range i.machines {
		switch {
		case id != systemID && e.due(now):
			others = append(others, id)
		case !e.polled(now) && now.Sub(e.at) > forgetAfter:
			delete(i.machines, id)
		}
	}
	slices.SortFunc(others, func(a, b string) int {
		return cmp.Or(i.machines[a].at.Compare(i.machines[b].at), cmp.Compare(a, b))
	})
	return append([]string{systemID}, others[:min(len(others), i.atOnce-1)]...)
}

// read lists machines. A machine that is not in the list becomes unknown.
func (i *Inventory) read(ctx context.Context, ids []string, began time.Time) error {
	list, err := i.api.ListMachines(ctx, maas.MachineFilter{SystemIDs: ids})
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.clock.Now()
	i.resume = now.Add(pollRest * now.Sub(began))
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			i.atOnce = max(1, len(ids)/2) // MAAS may be fast enough for a shorter list.
		}
		return err
	}
	i.atOnce = min(mostAtOnce, i.atOnce+1)
	shown := map[string]*maas.Machine{}
	for n := range list {
		shown[list[n].SystemID] = &list[n]
	}
	for _, id := range ids {
		// The result of another call that finished during the list call is newer.
		if e := i.entry(id); !e.at.After(began) {
			e.machine, e.at = shown[id], now
		}
	}
	return nil
}

// known returns the cached machine; nil if it is unknown.
func (i *Inventory) known(systemID string) *maas.Machine {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.entry(systemID).machine
}

// Store caches a machine that a call returned.
func (i *Inventory) Store(m *maas.Machine) {
	i.mu.Lock()
	defer i.mu.Unlock()
	e := i.entry(m.SystemID)
	e.machine, e.at = m, i.clock.Now()
}

// Forget invalidates a cached machine. It is used after a failed call, whose effect is unknown.
func (i *Inventory) Forget(systemID string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	e := i.entry(systemID)
	e.machine, e.at = nil, i.clock.Now()
}

// Refresh reads one machine from MAAS now.
func (i *Inventory) Refresh(ctx context.Context, systemID string) (*maas.Machine, error) {
	i.Forget(systemID)
	m, err := i.api.GetMachine(ctx, systemID)
	if err != nil {
		return nil, err
	}
	i.Store(m)
	return m, nil
}
