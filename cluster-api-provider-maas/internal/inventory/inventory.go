// SPDX-License-Identifier: Apache-2.0

// Package inventory caches reads from one MAAS for all reconcilers that use it, and reads no more than they need. MAAS
// is slow in rendering machines.
//
//	reconcile A ──┐                    ┌── machines by their IDs, all that are due with one call
//	reconcile B ──┼── Inventory ───────┼── matching Ready machines (only while the controller picks)
//	reconcile C ──┘                    └── images, zones, pools, tags, subnets and their addresses in use
package inventory

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/support/maas"
)

// Ages holds the maximum ages of cached data. The zero value of a field selects its default, given in parentheses.
type Ages struct {
	// Ready is for the list of Ready machines (10 s). Machines that this process allocates leave the list immediately.
	Ready time.Duration
	// Names is for images, pools, tags and subnets (1 min), which administrators change.
	Names time.Duration
	// Failure is how long an error is returned from the cache (5 s). A MAAS that is down is thus called every few seconds,
	// and not once for each machine.
	Failure time.Duration
}

// API is the part of the MAAS API that an Inventory reads.
type API interface {
	GetVersion(ctx context.Context) (maas.Version, error)
	WhoAmI(ctx context.Context) (maas.User, error)
	ListMachines(ctx context.Context, filter maas.MachineFilter) ([]maas.Machine, error)
	GetMachine(ctx context.Context, systemID string) (*maas.Machine, error)
	ListBootResources(ctx context.Context, kind maas.ImageType) ([]maas.BootResource, error)
	ListVMHosts(ctx context.Context) ([]maas.VMHost, error)
	GetVMHostParameters(ctx context.Context, id int) (maas.VMHostParameters, error)
	ListZones(ctx context.Context) ([]maas.Zone, error)
	ListPools(ctx context.Context) ([]maas.Pool, error)
	ListTags(ctx context.Context) ([]maas.Tag, error)
	ListSubnets(ctx context.Context) ([]maas.Subnet, error)
	ListAddressRanges(ctx context.Context) ([]maas.AddressRange, error)
	ListHeldAddresses(ctx context.Context, subnetID int) ([]maas.HeldAddress, error)
}

// Inventory caches the data of one MAAS, as seen by one user. It is safe for concurrent use. Returned machines are
// shared, so callers must not change them.
type Inventory struct {
	api   API
	clock clock.PassiveClock
	ages  Ages

	user    *shared[maas.User]
	version *shared[maas.Version]
	owned   *shared[listed]
	// allocated lists the owned machines that are not deployed yet.
	allocated *shared[listed]
	survey    *shared[listed]
	hosts     *shared[hostList]
	images    *shared[[]maas.BootResource]
	zones     *shared[[]maas.Zone]
	pools     *shared[[]maas.Pool]
	tags      *shared[[]maas.Tag]

	subnets *shared[[]maas.Subnet]
	ranges  *shared[[]maas.AddressRange]

	// polls serializes the reads of machines.
	polls gate

	mu       sync.Mutex
	machines map[string]*entry
	// atOnce is the maximum number of machines in the next read. Until resume, cached machines are used.
	atOnce int
	resume time.Time
	taken  map[string]time.Time
	// ready holds the lists of Ready machines by filter.
	ready map[string]*readyList
	// held holds the addresses in use by subnet.
	held map[int]*shared[[]maas.HeldAddress]
	// projects holds the parameters of VM hosts by host.
	projects map[int]*shared[maas.VMHostParameters]
}

// New returns an empty inventory.
func New(api API, c clock.PassiveClock, ages Ages) *Inventory {
	ages = Ages{
		Ready:   cmp.Or(ages.Ready, 10*time.Second),
		Names:   cmp.Or(ages.Names, time.Minute),
		Failure: cmp.Or(ages.Failure, 5*time.Second),
	}
	i := &Inventory{api: api, clock: c, ages: ages, polls: newGate(c, ages.Failure), machines: map[string]*entry{}, atOnce: mostAtOnce,
		taken: map[string]time.Time{}, ready: map[string]*readyList{}, held: map[int]*shared[[]maas.HeldAddress]{},
		projects: map[int]*shared[maas.VMHostParameters]{}}
	i.user = newShared(c, ages.Failure, api.WhoAmI)
	i.version = newShared(c, ages.Failure, api.GetVersion)
	i.owned, i.allocated = i.newOwned(dearRest), i.newOwned(readyRest, maas.StatusAllocated)
	i.survey = i.newReady(maas.MachineFilter{}, dearRest)
	i.hosts = newShared(c, ages.Failure, i.loadHosts)
	i.images = newShared(c, ages.Failure, func(ctx context.Context) ([]maas.BootResource, error) {
		return api.ListBootResources(ctx, maas.ImagesAll)
	})
	i.zones, i.pools, i.tags = newShared(c, ages.Failure, api.ListZones), newShared(c, ages.Failure, api.ListPools), newShared(c, ages.Failure, api.ListTags)
	i.subnets, i.ranges = newShared(c, ages.Failure, api.ListSubnets), newShared(c, ages.Failure, api.ListAddressRanges)
	return i
}

// Version returns the version of MAAS, as it was at most maxAge ago.
func (i *Inventory) Version(ctx context.Context, maxAge time.Duration) (maas.Version, error) {
	return i.version.get(ctx, maxAge)
}

// Images returns the images in MAAS.
func (i *Inventory) Images(ctx context.Context) ([]maas.BootResource, error) {
	return i.images.get(ctx, i.ages.Names)
}

// Zones returns the availability zones, at most maxAge old.
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
