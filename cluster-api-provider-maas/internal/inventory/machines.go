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
	// mostAtOnce bounds how many machines are read with one call. MAAS takes some 25 ms to print one.
	mostAtOnce = 50
	// pollRest is how many times as long as it took a read is not followed by another one of machines that are known: polling keeps a
	// quarter of one of MAAS's workers busy at most, and gets rarer where MAAS is slow, or has much to do.
	pollRest = 3
	// forgetAfter is how long a machine is remembered that nobody asks for.
	forgetAfter = time.Hour
)

// entry is a machine as MAAS showed it, and how it is asked for.
type entry struct {
	// machine is nil when it is not known, at is when MAAS showed it.
	machine *maas.Machine
	at      time.Time
	// maxAge is how old it may be to who last asked for it.
	maxAge time.Duration
	asked  time.Time
}

// polled tells that somebody asks for the machine again and again.
func (e *entry) polled(now time.Time) bool {
	return !e.asked.IsZero() && now.Sub(e.asked) <= 2*e.maxAge+time.Minute
}

// due tells that its time has come, or comes soon: one call reads what several would.
func (e *entry) due(now time.Time) bool {
	return e.polled(now) && (e.machine == nil || now.Sub(e.at) >= e.maxAge*3/4)
}

// Machine returns a machine as it was at most maxAge ago, or longer where MAAS is slow. maas.IsNotFound tells that MAAS does not have
// it. One call reads it and the others that are due.
func (i *Inventory) Machine(ctx context.Context, systemID string, maxAge time.Duration) (*maas.Machine, error) {
	if m := i.fresh(systemID, maxAge); m != nil {
		return m, nil
	}
	if err := i.polls.enter(ctx); err != nil {
		return nil, err
	}
	defer i.polls.leave()
	if m := i.fresh(systemID, maxAge); m != nil {
		return m, nil // Somebody read it meanwhile.
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
	// A list proves nothing: ask what became of it.
	m, err := i.api.GetMachine(ctx, systemID)
	if err != nil {
		return nil, err
	}
	i.Store(m)
	return m, nil
}

// fresh notes who asks for a machine, and returns it when what is known of it is new enough, or must do for now.
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

// entry returns what is known of a machine; mu must be held.
func (i *Inventory) entry(systemID string) *entry {
	e, ok := i.machines[systemID]
	if !ok {
		e = &entry{}
		i.machines[systemID] = e
	}
	return e
}

// due returns the machine and those that are due, the oldest first, as many as one call may read.
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

// read lists machines. What it does not show is not known any more.
func (i *Inventory) read(ctx context.Context, ids []string, began time.Time) error {
	list, err := i.api.ListMachines(ctx, maas.MachineFilter{SystemIDs: ids})
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.clock.Now()
	i.resume = now.Add(pollRest * now.Sub(began))
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			i.atOnce = max(1, len(ids)/2) // MAAS may manage a shorter list.
		}
		return err
	}
	i.atOnce = min(mostAtOnce, i.atOnce+1)
	shown := map[string]*maas.Machine{}
	for n := range list {
		shown[list[n].SystemID] = &list[n]
	}
	for _, id := range ids {
		// What a call of ours brought back while the list was under way is newer.
		if e := i.entry(id); !e.at.After(began) {
			e.machine, e.at = shown[id], now
		}
	}
	return nil
}

// known returns what MAAS last showed of a machine.
func (i *Inventory) known(systemID string) *maas.Machine {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.entry(systemID).machine
}

// Store keeps what a call of ours brought back.
func (i *Inventory) Store(m *maas.Machine) {
	i.mu.Lock()
	defer i.mu.Unlock()
	e := i.entry(m.SystemID)
	e.machine, e.at = m, i.clock.Now()
}

// Forget makes the next read of a machine ask MAAS, since a call of ours failed and nobody knows what it did.
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
