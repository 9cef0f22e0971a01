// SPDX-License-Identifier: Apache-2.0

package lxd

import (
	"maps"
	"slices"
	"strings"

	"github.com/openshift/hypershift/support/maas"
)

// typeLXD is the MAAS type of LXD hosts, and the power type of their virtual machines.
const typeLXD = "lxd"

// composable is the capability of a host on which MAAS can compose machines.
const composable = "composable"

// Size is an amount of host resources.
type Size struct {
	Cores, MemoryMiB int
	DiskBytes        int64
}

func (s Size) minus(o Size) Size {
	return Size{s.Cores - o.Cores, s.MemoryMiB - o.MemoryMiB, s.DiskBytes - o.DiskBytes}
}

// Host is an LXD host with its total and free resources.
type Host struct {
	ID            int
	Name          string
	ZoneID        int
	Zone          string
	PoolID        int
	Pool          string
	Tags          []string
	Architectures []string
	// Project is the LXD project in which MAAS composes; empty if it was not read.
	Project string
	// Total is the capacity of the host, with its overcommit ratios. Free is the unused part of it.
	Total, Free Size
	// Stores holds the free bytes of each storage pool. DefaultStore is the pool that MAAS uses by default. Both are empty
	// if MAAS reports no pools; Free applies then.
	Stores       map[string]int64
	DefaultStore string
}

// NoVMHosts describes a MAAS whose API no longer has VM hosts.
const NoVMHosts = "this MAAS has no VM hosts, on which virtual machines are composed: they ended with MAAS 3.8"

// Available returns the hosts on which MAAS composes LXD machines, sorted by name.
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

// usedOf returns the larger of the used resources and the unavailable ones. Other projects on the host use a part of
// the unavailable ones.
func usedOf(h maas.VMHost) Size {
	return Size{
		Cores:     max(h.Used.Cores, h.Total.Cores-h.Available.Cores),
		MemoryMiB: max(h.Used.Memory, h.Total.Memory-h.Available.Memory),
		DiskBytes: max(h.Used.LocalStorage, h.Total.LocalStorage-h.Available.LocalStorage),
	}
}

// overCommitted applies an overcommit ratio. A ratio that MAAS does not report counts as 1.
func overCommitted(total int, ratio float64) int {
	if ratio <= 0 {
		return total
	}
	return int(float64(total) * ratio)
}

// take subtracts a reservation that MAAS does not report yet.
func (h *Host) take(p Placement) {
	size := p.size()
	h.Free = h.Free.minus(size)
	if left, ok := h.Stores[p.Store]; ok {
		h.Stores = maps.Clone(h.Stores)
		h.Stores[p.Store] = left - size.DiskBytes
	}
}

// storeFor returns the storage pool for the disk: the requested one, else the default one, else the one with the most
// free space. It reports whether the disk fits. If the host reports no pools, the name is the requested one.
func (h *Host) storeFor(w Request) (name string, room bool) {
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
