// SPDX-License-Identifier: Apache-2.0

package lxd

import (
	"maps"
	"slices"
	"strings"

	"github.com/openshift/hypershift/support/maas"
)

// typeLXD is how MAAS names the hosts of this kind, and the power of what it composes there.
const typeLXD = "lxd"

// composable is the capability of a host on which MAAS makes machines.
const composable = "composable"

// Size is an amount of what a host has.
type Size struct {
	Cores, MemoryMiB int
	DiskBytes        int64
}

func (s Size) minus(o Size) Size {
	return Size{s.Cores - o.Cores, s.MemoryMiB - o.MemoryMiB, s.DiskBytes - o.DiskBytes}
}

// Host is an LXD host with what it has left.
type Host struct {
	ID            int
	Name          string
	ZoneID        int
	Zone          string
	PoolID        int
	Pool          string
	Tags          []string
	Architectures []string
	// Project is the LXD project that MAAS composes in; empty where nobody asked.
	Project string
	// Total is what the host may give away, with its over-commit ratios; Free is what is left of it.
	Total, Free Size
	// Stores are the bytes that are free in each storage pool, DefaultStore names the one that MAAS takes by itself. There are none where
	// MAAS tells no pools: Free counts then.
	Stores       map[string]int64
	DefaultStore string
}

// Available are the hosts on which MAAS composes LXD machines, in the order of their names.
func Available(listed []maas.VMHost) []Host {
	var hosts []Host
	for _, h := range listed {
		if h.Type == typeLXD && (len(h.Capabilities) == 0 || slices.Contains(h.Capabilities, composable)) {
			hosts = append(hosts, hostOf(h))
		}
	}
	slices.SortFunc(hosts, func(a, b Host) int { return strings.Compare(a.Name, b.Name) })
	return hosts
}

func hostOf(h maas.VMHost) Host {
	host := Host{ID: h.ID, Name: h.Name, ZoneID: h.Zone.ID, Zone: h.Zone.Name, PoolID: h.Pool.ID, Pool: h.Pool.Name, Tags: h.Tags,
		Architectures: h.Architectures, Stores: map[string]int64{}}
	host.Total = Size{overCommitted(h.Total.Cores, h.CPUOverCommitRatio), overCommitted(h.Total.Memory, h.MemoryOverCommitRatio), h.Total.LocalStorage}
	host.Free = host.Total.minus(usedOf(h))
	for _, pool := range h.StoragePools {
		host.Stores[pool.Name] = pool.Available
		if pool.Default {
			host.DefaultStore = pool.Name
		}
	}
	return host
}

// usedOf is what MAAS counts as used, or, where that is more, what it says is not available: that of other projects on the host.
func usedOf(h maas.VMHost) Size {
	return Size{
		Cores:     max(h.Used.Cores, h.Total.Cores-h.Available.Cores),
		MemoryMiB: max(h.Used.Memory, h.Total.Memory-h.Available.Memory),
		DiskBytes: max(h.Used.LocalStorage, h.Total.LocalStorage-h.Available.LocalStorage),
	}
}

// overCommitted counts a ratio that MAAS does not tell as none.
func overCommitted(total int, ratio float64) int {
	if ratio <= 0 {
		return total
	}
	return int(float64(total) * ratio)
}

// take counts what a reservation keeps, which MAAS does not report yet.
func (h *Host) take(p Placement) {
	size := p.size()
	h.Free = h.Free.minus(size)
	if left, ok := h.Stores[p.Store]; ok {
		h.Stores = maps.Clone(h.Stores)
		h.Stores[p.Store] = left - size.DiskBytes
	}
}

// storeFor is the storage pool that a disk goes to: the one that is asked for, else the default one, else the one with the most room.
// Without room there is none, nor where the host tells no pools.
func (h *Host) storeFor(w Wish) (name string, room bool) {
	need := w.Size().DiskBytes
	switch {
	case len(h.Stores) == 0:
		return w.Store, h.Free.DiskBytes >= need
	case w.Store != "":
		return w.Store, h.Stores[w.Store] >= need
	case h.DefaultStore != "" && h.Stores[h.DefaultStore] >= need:
		return h.DefaultStore, true
	}
	name = slices.MaxFunc(slices.Sorted(maps.Keys(h.Stores)), func(a, b string) int {
		return int(min(max(h.Stores[a]-h.Stores[b], -1), 1))
	})
	return name, h.Stores[name] >= need
}
