// SPDX-License-Identifier: Apache-2.0

package lxd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/maas"
)

// TestAvailable converts hosts as MAAS lists them.
func TestAvailable(t *testing.T) {
	t.Parallel()
	full := maas.VMHost{ID: 7, Name: "b", Type: "lxd", Zone: maas.Zone{ID: 3, Name: "north"}, Pool: maas.Pool{ID: 2, Name: "gold"}, Tags: []string{"ssd"}, Architectures: []string{"amd64/generic"},
		Total: maas.Resources{Cores: 10, Memory: 1000, LocalStorage: 100}, Used: maas.Resources{Cores: 1, Memory: 300, LocalStorage: 20},
		Available: maas.Resources{Cores: 7, Memory: 900, LocalStorage: 70}, CPUOverCommitRatio: 2.5, MemoryOverCommitRatio: 0.5,
		StoragePools: []maas.StoragePool{{Name: "slow", Available: 4}, {Name: "fast", Available: 9, Default: true}}}
	got := lxd.Available([]maas.VMHost{full, {ID: 8, Name: "c", Type: "virsh"}, {ID: 9, Name: "a", Type: "lxd", Total: maas.Resources{Cores: 4}, Available: maas.Resources{Cores: 4}},
		{ID: 10, Name: "d", Type: "lxd", Capabilities: []string{"fixed_local_storage"}}})
	want := []lxd.Host{
		// An old MAAS returns neither capabilities nor overcommit ratios.
		{ID: 9, Name: "a", Total: lxd.Size{Cores: 4}, Free: lxd.Size{Cores: 4}},
		{ID: 7, Name: "b", ZoneID: 3, Zone: "north", PoolID: 2, Pool: "gold", Tags: []string{"ssd"}, Architectures: []string{"amd64/generic"},
			Total: lxd.Size{Cores: 25, MemoryMiB: 500, DiskBytes: 100},
			// Cores and disk come from the unavailable resources, memory from the used ones: the larger value counts.
			Free:   lxd.Size{Cores: 22, MemoryMiB: 200, DiskBytes: 70},
			Stores: map[string]int64{"slow": 4, "fast": 9}, DefaultStore: "fast"},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestExactFit checks that a host with exactly the requested resources is selected, and a host with slightly less is
// not.
func TestExactFit(t *testing.T) {
	t.Parallel()
	disk := func(free int64) func(*maas.VMHost) {
		return func(h *maas.VMHost) { h.Available.LocalStorage = free }
	}
	pools := func(free int64) func(*maas.VMHost) { return stores(map[string]int64{"default": 1e9, "nvme": free}) }
	preferred := func(free int64) func(*maas.VMHost) {
		return stores(map[string]int64{"default": free, "nvme": 100e9})
	}
	named := with(small, func(w *lxd.Request) { w.Store = "nvme" })
	for name, tc := range map[string]struct {
		request lxd.Request
		host    maas.VMHost
		store   string
		takes   bool
	}{
		"cores":                      {small, host("a", using(14, 0)), "", true},
		"one core too few":           {small, host("a", using(15, 0)), "", false},
		"memory":                     {small, host("a", using(0, 65536-4096)), "", true},
		"one MiB too little":         {small, host("a", using(0, 65536-4095)), "", false},
		"disk":                       {small, host("a", disk(60e9)), "", true},
		"one byte too little":        {small, host("a", disk(60e9-1)), "", false},
		"the requested storage pool": {named, host("a", pools(60e9)), "nvme", true},
		"one byte too little in the requested pool":                      {named, host("a", pools(60e9-1)), "", false},
		"the default storage pool":                                       {small, host("a", preferred(60e9)), "default", true},
		"one byte too little in the default pool, but enough in another": {small, host("a", preferred(60e9-1)), "nvme", true},
		"the largest other storage pool":                                 {small, host("a", pools(60e9)), "nvme", true},
		"one byte too little in every pool":                              {small, host("a", pools(60e9-1)), "", false},
		"no list of storage pools":                                       {named, host("a"), "nvme", true},
	} {
		t.Run("When a host has just "+name+", it should report whether the disk fits", func(t *testing.T) {
			t.Parallel()
			choice, refusal := lxd.Select(tc.request, lxd.Available([]maas.VMHost{tc.host}), now, nil, nil)
			if (choice != nil) != tc.takes {
				t.Fatalf("it takes the machine: %t; %s", choice != nil, refusal.Message)
			}
			if choice == nil && refusal.Reason != lxd.ReasonInsufficientResources {
				t.Errorf("the reason is %s", refusal.Reason)
			}
			if choice != nil && choice.Store != tc.store {
				t.Errorf("the store is %q", choice.Store)
			}
		})
	}
}

// TestMostRoom checks that without a default storage pool, the one with the most free space gets the disk. The name
// breaks ties.
func TestMostRoom(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		free map[string]int64
		want string
	}{
		"When one pool has the most space, it should be selected":        {map[string]int64{"a": 70e9, "b": 90e9, "c": 80e9}, "b"},
		"When two pools have equal space, the name should break the tie": {map[string]int64{"c": 90e9, "b": 90e9, "a": 1e9}, "b"},
		// The values exceed 32 bits, and differ by less than a gigabyte.
		"When the pools differ by a byte, the larger one should be selected": {map[string]int64{"a": 9e12, "b": 9e12 + 1}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			choice, refusal := lxd.Select(small, lxd.Available([]maas.VMHost{host("h", stores(tc.free))}), now, nil, nil)
			if choice == nil || choice.Store != tc.want {
				t.Errorf("it goes to %+v %s", choice, refusal.Message)
			}
		})
	}
}

// TestSelectChangesNothing checks that Select does not change the list of hosts. It is called repeatedly with one
// list, and must subtract the reservations of peers once each time.
func TestSelectChangesNothing(t *testing.T) {
	t.Parallel()
	hosts := lxd.Available([]maas.VMHost{host("a", stores(map[string]int64{"default": 130e9}))})
	before := lxd.Available([]maas.VMHost{host("a", stores(map[string]int64{"default": 130e9}))})
	peers := []lxd.Peer{peer("1", "a", "az1", unreported, func(p *lxd.Peer) { p.Store, p.Cores, p.MemoryMiB = "default", 8, 30000 })}
	for range 3 {
		if choice, refusal := lxd.Select(small, hosts, now, peers, nil); choice == nil {
			t.Fatal(refusal.Message)
		}
	}
	if diff := cmp.Diff(before, hosts); diff != "" {
		t.Errorf("the list is another one (-want +got):\n%s", diff)
	}
}

// TestReservationsCount checks that each resource that a peer reserves is unavailable to later machines until MAAS
// reports it.
func TestReservationsCount(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keeps func(*lxd.Peer)
		lacks string
	}{
		"cores":  {func(p *lxd.Peer) { p.Cores = 15 }, "1 lacks 2 cores"},
		"memory": {func(p *lxd.Peer) { p.MemoryMiB = 65536 - 4095 }, "1 lacks 4 GiB of memory"},
		"disk":   {func(p *lxd.Peer) { p.DiskGB = 941 }, "1 lacks 60 GB of disk"},
	} {
		t.Run("When a peer reserves "+name+", that resource should be unavailable", func(t *testing.T) {
			t.Parallel()
			hosts := lxd.Available([]maas.VMHost{host("a")})
			_, refusal := lxd.Select(small, hosts, now, []lxd.Peer{peer("1", "a", "az1", unreported, tc.keeps)}, nil)
			if want := "asked for 2 cores, 4096 MiB of memory and a disk of 60 GB; 1 host: " + tc.lacks; refusal.Message != want {
				t.Errorf("it says %q", refusal.Message)
			}
			if choice, refusal := lxd.Select(small, hosts, now, []lxd.Peer{peer("1", "a", "az1", tc.keeps)}, nil); choice == nil {
				t.Errorf("MAAS reports the peer, and it counts again: %s", refusal.Message)
			}
			if choice, refusal := lxd.Select(small, hosts, now, []lxd.Peer{peer("1", "b", "az1", unreported, tc.keeps)}, nil); choice == nil {
				t.Errorf("the peer is on another host: %s", refusal.Message)
			}
		})
	}
}

// TestReportedAt checks that a list from the moment of the compose call may lack the machine, so its reservation
// still counts.
func TestReportedAt(t *testing.T) {
	t.Parallel()
	big := with(small, func(w *lxd.Request) { w.Cores = 15 })
	composedNow := peer("1", "a", "az1", func(p *lxd.Peer) { p.Composed = now })
	hosts := lxd.Available([]maas.VMHost{host("a")})
	if choice, _ := lxd.Select(big, hosts, now, []lxd.Peer{composedNow}, nil); choice != nil {
		t.Error("the host is overbooked by a list of the same moment")
	}
	if choice, refusal := lxd.Select(big, hosts, now.Add(1), []lxd.Peer{composedNow}, nil); choice == nil {
		t.Errorf("a later list includes it: %s", refusal.Message)
	}
}
