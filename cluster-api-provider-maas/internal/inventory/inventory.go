// SPDX-License-Identifier: Apache-2.0

// Package inventory shares what is read of one MAAS between all that reconcile with it, and reads no more than they need: MAAS takes
// long to print a machine.
//
//	reconcile A ──┐                    ┌── machines by their ids, those that are due with one call
//	reconcile B ──┼── Inventory ───────┼── Ready machines that fit (only while someone must pick one himself)
//	reconcile C ──┘                    └── images, zones, pools, tags, subnets and who has their addresses
package inventory

import (
	"cmp"
	"context"
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

// Inventory holds what was read of one MAAS as one user. It is safe for concurrent use. Machines that it returns are
// shared: nobody may change them.
type Inventory struct {
	api   API
	clock clock.PassiveClock
	ages  Ages

	user    *shared[maas.User]
	version *shared[maas.Version]
	owned   *shared[listed]
	// allocated are those of them that are not installed yet.
	allocated *shared[listed]
	survey    *shared[listed]
	hosts     *shared[hostList]
	images    *shared[[]maas.BootResource]
	zones     *shared[[]maas.Zone]
	pools     *shared[[]maas.Pool]
	tags      *shared[[]maas.Tag]

	subnets *shared[[]maas.Subnet]
	ranges  *shared[[]maas.AddressRange]

	// polls reads machines; who has its turn may.
	polls gate

	mu       sync.Mutex
	machines map[string]*entry
	// atOnce is how many machines the next call asks for, resume until when those that are known must do.
	atOnce int
	resume time.Time
	taken  map[string]time.Time
	// ready are the lists of Ready machines by what was asked for.
	ready map[string]*readyList
	// held are the addresses of each subnet that somebody has.
	held map[int]*shared[[]maas.HeldAddress]
	// projects are those of VM hosts, by host.
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
