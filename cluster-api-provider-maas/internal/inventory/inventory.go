// Package inventory shares what is read of one MAAS between all that reconcile with it: one list call serves a thousand
// machines.
//
//	reconcile A ──┐                    ┌── owned machines (one list a poll interval)
//	reconcile B ──┼── Inventory ───────┼── Ready machines (only while someone looks for one)
//	reconcile C ──┘                    └── images, zones, pools, tags, subnets and who has their addresses
package inventory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/support/maas"
)

// Ages say how old what is shared may be; the zero value of each field means its default.
type Ages struct {
	// Ready is that of the list of Ready machines (10 s); those that we take leave it at once.
	Ready time.Duration
	// Names is that of images, pools, tags and subnets (1 min), which people change.
	Names time.Duration
	// Failure is how long a failure is handed to others who ask (5 s), so that a MAAS that is down is asked every few
	// seconds, and not once by each machine.
	Failure time.Duration
}

// API is what an Inventory reads.
type API interface {
	WhoAmI(ctx context.Context) (maas.User, error)
	ListMachines(ctx context.Context, filter maas.MachineFilter) ([]maas.Machine, error)
	GetMachine(ctx context.Context, systemID string) (*maas.Machine, error)
	ListBootResources(ctx context.Context, kind maas.ImageType) ([]maas.BootResource, error)
	ListZones(ctx context.Context) ([]maas.Zone, error)
	ListPools(ctx context.Context) ([]maas.Pool, error)
	ListTags(ctx context.Context) ([]maas.Tag, error)
	ListSubnets(ctx context.Context) ([]maas.Subnet, error)
	ListAddressRanges(ctx context.Context) ([]maas.AddressRange, error)
	ListHeldAddresses(ctx context.Context, subnetID int) ([]maas.HeldAddress, error)
}

// seen is a machine as MAAS showed it at a time.
type seen struct {
	machine *maas.Machine
	at      time.Time
}

// Inventory holds what was read of one MAAS as one user. It is safe for concurrent use. Machines that it returns are
// shared: nobody may change them.
type Inventory struct {
	api   API
	clock clock.PassiveClock
	ages  Ages

	user   *shared[maas.User]
	owned  *shared[struct{}]
	ready  *shared[[]maas.Machine]
	images *shared[[]maas.BootResource]
	zones  *shared[[]maas.Zone]
	pools  *shared[[]maas.Pool]
	tags   *shared[[]maas.Tag]

	subnets *shared[[]maas.Subnet]
	ranges  *shared[[]maas.AddressRange]

	mu       sync.Mutex
	machines map[string]seen
	taken    map[string]time.Time
	// held are the addresses of each subnet that somebody has.
	held map[int]*shared[[]maas.HeldAddress]
}

// New returns an empty inventory.
func New(api API, c clock.PassiveClock, ages Ages) *Inventory {
	ages = Ages{
		Ready:   cmp.Or(ages.Ready, 10*time.Second),
		Names:   cmp.Or(ages.Names, time.Minute),
		Failure: cmp.Or(ages.Failure, 5*time.Second),
	}
	i := &Inventory{api: api, clock: c, ages: ages, machines: map[string]seen{}, taken: map[string]time.Time{},
		held: map[int]*shared[[]maas.HeldAddress]{}}
	i.user = newShared(c, ages.Failure, api.WhoAmI)
	i.owned = newShared(c, ages.Failure, i.loadOwned)
	i.ready = newShared(c, ages.Failure, func(ctx context.Context) ([]maas.Machine, error) {
		return api.ListMachines(ctx, maas.MachineFilter{Statuses: []maas.Status{maas.StatusReady}})
	})
	i.images = newShared(c, ages.Failure, func(ctx context.Context) ([]maas.BootResource, error) {
		return api.ListBootResources(ctx, maas.ImagesAll)
	})
	i.zones, i.pools, i.tags = newShared(c, ages.Failure, api.ListZones), newShared(c, ages.Failure, api.ListPools), newShared(c, ages.Failure, api.ListTags)
	i.subnets, i.ranges = newShared(c, ages.Failure, api.ListSubnets), newShared(c, ages.Failure, api.ListAddressRanges)
	return i
}

// Machine returns a machine as it was at most maxAge ago. maas.IsNotFound tells that MAAS does not have it.
func (i *Inventory) Machine(ctx context.Context, systemID string, maxAge time.Duration) (*maas.Machine, error) {
	if m := i.fresh(systemID, maxAge); m != nil {
		return m, nil
	}
	if _, err := i.owned.get(ctx, maxAge); err != nil {
		return nil, err
	}
	if m := i.known(systemID); m != nil {
		return m, nil
	}
	// It is not one of ours any more: ask what became of it.
	m, err := i.api.GetMachine(ctx, systemID)
	if err != nil {
		return nil, err
	}
	i.Store(m)
	return m, nil
}

// Owned returns the machines that belong to the user of the API key, as they were at most maxAge ago.
func (i *Inventory) Owned(ctx context.Context, maxAge time.Duration) ([]maas.Machine, error) {
	user, err := i.user.get(ctx, time.Hour)
	if err != nil {
		return nil, err
	}
	if _, err := i.owned.get(ctx, maxAge); err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var owned []maas.Machine
	for _, s := range i.machines {
		if s.machine.Owner == user.Username {
			owned = append(owned, *s.machine)
		}
	}
	slices.SortFunc(owned, func(a, b maas.Machine) int {
		if a.SystemID < b.SystemID {
			return -1
		}
		return 1
	})
	return owned, nil
}

func (i *Inventory) fresh(systemID string, maxAge time.Duration) *maas.Machine {
	i.mu.Lock()
	defer i.mu.Unlock()
	s, ok := i.machines[systemID]
	if !ok || i.clock.Since(s.at) >= maxAge {
		return nil
	}
	return s.machine
}

// known returns what the last list or a later call of ours showed.
func (i *Inventory) known(systemID string) *maas.Machine {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.machines[systemID].machine
}

// loadOwned lists the user's machines. What a call of ours brought back while the list was under way is newer than the list.
func (i *Inventory) loadOwned(ctx context.Context) (struct{}, error) {
	user, err := i.user.get(ctx, time.Hour)
	if err != nil {
		return struct{}{}, err
	}
	start := i.clock.Now()
	list, err := i.api.ListMachines(ctx, maas.MachineFilter{Owners: []string{user.Username}})
	if maas.FieldMessages(err, "owner") != nil {
		// A MAAS that knows no such filter lists them all.
		list, err = i.api.ListMachines(ctx, maas.MachineFilter{})
	}
	if err != nil {
		return struct{}{}, err
	}
	end := i.clock.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, s := range i.machines {
		if s.at.Before(start) {
			delete(i.machines, id)
		}
	}
	for n := range list {
		if _, newer := i.machines[list[n].SystemID]; !newer {
			i.machines[list[n].SystemID] = seen{machine: &list[n], at: end}
		}
	}
	return struct{}{}, nil
}

// Store keeps what a call of ours brought back.
func (i *Inventory) Store(m *maas.Machine) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.machines[m.SystemID] = seen{machine: m, at: i.clock.Now()}
}

// Forget makes the next read of a machine ask MAAS, since a call of ours failed and nobody knows what it did.
func (i *Inventory) Forget(systemID string) {
	i.mu.Lock()
	delete(i.machines, systemID)
	i.mu.Unlock()
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

// Ready returns the machines that can be allocated, without those that were taken since the list was made.
func (i *Inventory) Ready(ctx context.Context) ([]maas.Machine, error) {
	list, err := i.ready.get(ctx, i.ages.Ready)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, at := range i.taken {
		if i.clock.Since(at) > 2*i.ages.Ready {
			delete(i.taken, id)
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(m maas.Machine) bool {
		_, taken := i.taken[m.SystemID]
		return taken
	}), nil
}

// Take notes that a machine is not Ready any more.
func (i *Inventory) Take(systemID string) {
	i.mu.Lock()
	i.taken[systemID] = i.clock.Now()
	i.mu.Unlock()
}

// Claim takes the first of the candidates that nobody took since they were read, and returns its system id; empty when there
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

// ForgetReady makes the next Ready ask MAAS.
func (i *Inventory) ForgetReady() { i.ready.forget() }

// Images returns the images that MAAS holds.
func (i *Inventory) Images(ctx context.Context) ([]maas.BootResource, error) {
	return i.images.get(ctx, i.ages.Names)
}

// Zones returns the availability zones, as they were at most maxAge ago.
func (i *Inventory) Zones(ctx context.Context, maxAge time.Duration) ([]maas.Zone, error) {
	return i.zones.get(ctx, maxAge)
}

// Pools returns the resource pools.
func (i *Inventory) Pools(ctx context.Context) ([]maas.Pool, error) {
	return i.pools.get(ctx, i.ages.Names)
}

// Tags returns the tags.
func (i *Inventory) Tags(ctx context.Context) ([]maas.Tag, error) {
	return i.tags.get(ctx, i.ages.Names)
}
