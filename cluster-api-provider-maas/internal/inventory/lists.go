// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openshift/hypershift/support/maas"
)

const (
	// dearRest and readyRest limit how often a list is read. After a read, the list is used for at least this
	// multiple of the duration of the read. dearRest is for lists that may include all machines of a site, readyRest
	// for lists of matching Ready machines.
	dearRest, readyRest = 100, 4
	// composeAge is the maximum age of the data about VM hosts.
	composeAge = 10 * time.Minute
)

// listed is a list of machines, and the time of the call.
type listed struct {
	machines []maas.Machine
	at       time.Time
}

// newOwned returns the list of the machines of the user, in the given states or in all.
func (i *Inventory) newOwned(rest int, statuses ...maas.Status) *shared[listed] {
	list := newShared(i.clock, i.ages.Failure, func(ctx context.Context) (listed, error) { return i.loadOwned(ctx, statuses) })
	list.rest = rest
	return list
}

func (i *Inventory) loadOwned(ctx context.Context, statuses []maas.Status) (listed, error) {
	user, err := i.user.get(ctx, time.Hour)
	if err != nil {
		return listed{}, err
	}
	start := i.clock.Now()
	list, err := i.api.ListMachines(ctx, maas.MachineFilter{Owners: []string{user.Username}, Statuses: statuses})
	if maas.FieldMessages(err, "owner") != nil {
		// A MAAS without this filter lists all machines; current omits those of other users.
		list, err = i.api.ListMachines(ctx, maas.MachineFilter{Statuses: statuses})
	}
	slices.SortFunc(list, func(a, b maas.Machine) int { return cmp.Compare(a.SystemID, b.SystemID) })
	return listed{list, start}, err
}

// Owned returns the machines of the user of the API key, at most maxAge old, or older if the list takes long to read. A
// maxAge of zero forces a read.
func (i *Inventory) Owned(ctx context.Context, maxAge time.Duration) ([]maas.Machine, error) {
	if maxAge == 0 {
		i.owned.forget()
	}
	return i.current(ctx, i.owned, maxAge)
}

// Allocated returns the machines of the user that are allocated and not deployed yet, which are few.
func (i *Inventory) Allocated(ctx context.Context, maxAge time.Duration) ([]maas.Machine, error) {
	return i.current(ctx, i.allocated, maxAge)
}

// current returns a list of the machines of the user. It replaces each machine that was read more recently with the
// newer data.
func (i *Inventory) current(ctx context.Context, list *shared[listed], maxAge time.Duration) ([]maas.Machine, error) {
	user, err := i.user.get(ctx, time.Hour)
	if err != nil {
		return nil, err
	}
	all, err := list.get(ctx, maxAge)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	current := make([]maas.Machine, 0, len(all.machines))
	for _, m := range all.machines {
		if newer, ok := i.machines[m.SystemID]; ok && newer.machine != nil && newer.at.After(all.at) {
			m = *newer.machine
		}
		if m.Owner == user.Username {
			current = append(current, m)
		}
	}
	return current, nil
}

// readyList is a list of Ready machines, and when it was last used.
type readyList struct {
	*shared[listed]
	asked time.Time
}

func (i *Inventory) newReady(filter maas.MachineFilter, rest int) *shared[listed] {
	filter.Statuses = []maas.Status{maas.StatusReady}
	list := newShared(i.clock, i.ages.Failure, func(ctx context.Context) (listed, error) {
		start := i.clock.Now()
		machines, err := i.api.ListMachines(ctx, filter)
		return listed{machines, start}, err
	})
	list.rest = rest
	return list
}

// Ready returns the Ready machines that match the filter, without those that were taken since the list was read.
func (i *Inventory) Ready(ctx context.Context, filter maas.MachineFilter) ([]maas.Machine, error) {
	return i.untaken(i.readyOf(filter).get(ctx, i.ages.Ready))
}

// Survey returns all Ready machines, for counting. The list may be some minutes old.
func (i *Inventory) Survey(ctx context.Context) ([]maas.Machine, error) {
	return i.untaken(i.survey.get(ctx, i.ages.Ready))
}

func (i *Inventory) readyOf(filter maas.MachineFilter) *shared[listed] {
	i.mu.Lock()
	defer i.mu.Unlock()
	key, now := fmt.Sprintf("%+v", filter), i.clock.Now()
	for other, list := range i.ready {
		if now.Sub(list.asked) > forgetAfter {
			delete(i.ready, other)
		}
	}
	list, ok := i.ready[key]
	if !ok {
		list = &readyList{shared: i.newReady(filter, readyRest)}
		i.ready[key] = list
	}
	list.asked = now
	return list.shared
}

// untaken omits the machines that were taken since the list was read. A machine in a later list is free again.
func (i *Inventory) untaken(list listed, err error) ([]maas.Machine, error) {
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, at := range i.taken {
		if i.clock.Since(at) > forgetAfter {
			delete(i.taken, id)
		}
	}
	return slices.DeleteFunc(slices.Clone(list.machines), func(m maas.Machine) bool {
		at, taken := i.taken[m.SystemID]
		if taken && at.Before(list.at) {
			delete(i.taken, m.SystemID)
			return false
		}
		return taken
	}), nil
}

// Take records that a machine is no longer Ready.
func (i *Inventory) Take(systemID string) {
	i.mu.Lock()
	i.taken[systemID] = i.clock.Now()
	i.mu.Unlock()
}

// Claim takes the first candidate that was not taken since the list was read, and returns its system ID; empty if there
// is none.
func (i *Inventory) Claim(candidates []maas.Machine) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, m := range candidates {
		if _, taken := i.taken[m.SystemID]; !taken {
			i.taken[m.SystemID] = i.clock.Now()
			return m.SystemID
		}
	}
	return ""
}

// Unclaim makes a claimed machine available again: no allocation was requested from MAAS, or MAAS rejected it although
// the machine is Ready.
func (i *Inventory) Unclaim(systemID string) {
	i.mu.Lock()
	delete(i.taken, systemID)
	i.mu.Unlock()
}

// VMHosts returns the VM hosts, at most maxAge old, and the time of the call.
func (i *Inventory) VMHosts(ctx context.Context, maxAge time.Duration) (hosts []maas.VMHost, asOf time.Time, err error) {
	list, err := i.hosts.get(ctx, maxAge)
	return list.hosts, list.at, err
}

// Project returns the LXD project in which MAAS composes on a VM host.
func (i *Inventory) Project(ctx context.Context, hostID int) (string, error) {
	i.mu.Lock()
	project, ok := i.projects[hostID]
	if !ok {
		project = newShared(i.clock, i.ages.Failure, func(ctx context.Context) (maas.VMHostParameters, error) {
			return i.api.GetVMHostParameters(ctx, hostID)
		})
		i.projects[hostID] = project
	}
	i.mu.Unlock()
	parameters, err := project.get(ctx, composeAge)
	return parameters.Project, err
}

// hostList is a list of VM hosts, and the time of the call.
type hostList struct {
	hosts []maas.VMHost
	at    time.Time
}

func (i *Inventory) loadHosts(ctx context.Context) (hostList, error) {
	start := i.clock.Now()
	hosts, err := i.api.ListVMHosts(ctx)
	return hostList{hosts, start}, err
}

// MayCompose reports whether MAAS has VM hosts, so that it may compose a machine if none matches. It is also true if
// this is unknown.
func (i *Inventory) MayCompose(ctx context.Context) bool {
	hosts, _, err := i.VMHosts(ctx, composeAge)
	return len(hosts) > 0 || err != nil && !maas.IsGone(err)
}
