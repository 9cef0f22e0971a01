// SPDX-License-Identifier: Apache-2.0

package lxd_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/maas"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// host returns an LXD host with 16 cores, 64 GiB and 1 TB in zone az1.
func host(name string, change ...func(*maas.VMHost)) maas.VMHost {
	size := maas.Resources{Cores: 16, Memory: 65536, LocalStorage: 1e12}
	h := maas.VMHost{ID: len(name), Name: name, Type: "lxd", Capabilities: []string{"composable"}, Architectures: []string{"amd64/generic"},
		Total: size, Available: size, Zone: maas.Zone{ID: 1, Name: "az1"}, Pool: maas.Pool{Name: "default"}, CPUOverCommitRatio: 1, MemoryOverCommitRatio: 1}
	for _, do := range change {
		do(&h)
	}
	return h
}

func in(zone string) func(*maas.VMHost) { return func(h *maas.VMHost) { h.Zone.Name = zone } }

func using(cores, memory int) func(*maas.VMHost) {
	return func(h *maas.VMHost) {
		h.Used = maas.Resources{Cores: cores, Memory: memory}
		h.Available.Cores, h.Available.Memory = h.Total.Cores-cores, h.Total.Memory-memory
	}
}

func stores(free map[string]int64) func(*maas.VMHost) {
	return func(h *maas.VMHost) {
		for name, n := range free {
			h.StoragePools = append(h.StoragePools, maas.StoragePool{Name: name, Total: n, Available: n, Default: name == "default"})
		}
	}
}

// peer returns a machine of pool p on a host, which MAAS already reports.
func peer(uid, host, zone string, change ...func(*lxd.Peer)) lxd.Peer {
	p := lxd.Peer{UID: uid, Group: "p", Placement: lxd.Placement{Host: host, Zone: zone, Hostname: "vm-" + uid, Cores: 2, MemoryMiB: 4096, DiskGB: 60, At: now.Add(-time.Hour), Composed: now.Add(-time.Hour)}}
	for _, do := range change {
		do(&p)
	}
	return p
}

func unreported(p *lxd.Peer) { p.Composed = time.Time{} }

var small = lxd.Request{Cores: 2, MemoryMiB: 4096, DiskGB: 60, Group: "p"}

func with(w lxd.Request, change func(*lxd.Request)) lxd.Request {
	change(&w)
	return w
}

func TestSelect(t *testing.T) {
	full := func(p *lxd.Peer) { p.Cores = 15; p.Composed = time.Time{} }
	for name, tc := range map[string]struct {
		request lxd.Request
		hosts   []maas.VMHost
		peers   []lxd.Peer
		avoid   map[string]bool
		want    string
	}{
		"When all hosts are equal, the name should break the tie":       {small, []maas.VMHost{host("b"), host("a")}, nil, nil, "a"},
		"When one host has more free resources, it should be selected":  {small, []maas.VMHost{host("a", using(8, 0)), host("b", using(4, 0))}, nil, nil, "b"},
		"When memory is scarcer than cores, memory should decide":       {small, []maas.VMHost{host("a", using(0, 60000)), host("b", using(8, 0))}, nil, nil, "b"},
		"When a host has a sibling, the other host should be selected":  {small, []maas.VMHost{host("a"), host("b", using(8, 0))}, []lxd.Peer{peer("1", "a", "az1")}, nil, "b"},
		"When the sibling is being deleted, it should not count":        {small, []maas.VMHost{host("a"), host("b", using(8, 0))}, []lxd.Peer{peer("1", "a", "az1", func(p *lxd.Peer) { p.Leaving = true })}, nil, "a"},
		"When a peer belongs to another node pool, it should not count": {small, []maas.VMHost{host("a"), host("b", using(8, 0))}, []lxd.Peer{peer("1", "a", "az1", func(p *lxd.Peer) { p.Group = "q" })}, nil, "a"},
		"When a zone has fewer siblings, it should win over a host with more free resources": {small, []maas.VMHost{host("a"), host("b"), host("c", in("az2"), using(12, 0))},
			[]lxd.Peer{peer("1", "a", "az1")}, nil, "c"},
		"When an attempt failed on a host, it should be selected last":         {small, []maas.VMHost{host("a"), host("b", using(12, 0))}, nil, map[string]bool{"a": true}, "b"},
		"When an attempt failed on the only host, it should be selected again": {small, []maas.VMHost{host("a")}, nil, map[string]bool{"a": true}, "a"},
		"When reservations fill a host, another host should be selected": {small, []maas.VMHost{host("a"), host("b", using(8, 0))},
			[]lxd.Peer{peer("1", "a", "az1", full, func(p *lxd.Peer) { p.Group = "q" })}, nil, "b"},
		"When MAAS already reports a reserved machine, it should not count twice": {with(small, func(w *lxd.Request) { w.Cores = 8 }), []maas.VMHost{host("a", using(8, 0))},
			[]lxd.Peer{peer("1", "a", "az1", func(p *lxd.Peer) { p.Cores = 8 })}, nil, "a"},
		"When MAAS over-commits cores, more cores should be available":            {with(small, func(w *lxd.Request) { w.Cores = 20 }), []maas.VMHost{host("a", using(12, 0), func(h *maas.VMHost) { h.CPUOverCommitRatio = 2 })}, nil, nil, "a"},
		"When MAAS over-commits memory, more memory should be available":          {with(small, func(w *lxd.Request) { w.MemoryMiB = 80000 }), []maas.VMHost{host("a", using(0, 40000), func(h *maas.VMHost) { h.MemoryOverCommitRatio = 2 })}, nil, nil, "a"},
		"When a host reserves memory for itself, less memory should be available": {with(small, func(w *lxd.Request) { w.MemoryMiB = 60000 }), []maas.VMHost{host("a", func(h *maas.VMHost) { h.MemoryOverCommitRatio = 0.9 }), host("b", using(12, 0))}, nil, nil, "b"},
		"When a host is not composable, it should not be selected":                {small, []maas.VMHost{host("a", func(h *maas.VMHost) { h.Capabilities = []string{"over_commit"} }), host("b", using(12, 0))}, nil, nil, "b"},
		"When a resource pool is requested, a host of that pool should be selected": {with(small, func(w *lxd.Request) { w.ResourcePool = "gold" }),
			[]maas.VMHost{host("a"), host("b", using(12, 0), func(h *maas.VMHost) { h.Pool.Name = "gold" })}, nil, nil, "b"},
		"When an architecture is requested, a host of that architecture should be selected": {with(small, func(w *lxd.Request) { w.Architecture = "arm64" }),
			[]maas.VMHost{host("a"), host("b", using(12, 0), func(h *maas.VMHost) { h.Architectures = []string{"arm64/generic"} })}, nil, nil, "b"},
		"When several zones are allowed, the one with the fewest siblings should be selected": {with(small, func(w *lxd.Request) { w.Zones = []string{"az2", "az3"} }),
			[]maas.VMHost{host("a"), host("b", in("az2")), host("c", in("az3"), using(12, 0))}, []lxd.Peer{peer("1", "b", "az2")}, nil, "c"},
		"When a host is not an LXD host, it should not be selected":               {small, []maas.VMHost{host("a", func(h *maas.VMHost) { h.Type = "virsh" }), host("b")}, nil, nil, "b"},
		"When MAAS reports too little available, the host should not be selected": {small, []maas.VMHost{host("a", func(h *maas.VMHost) { h.Available.Cores = 1 }), host("b")}, nil, nil, "b"},
		"When hosts must have tags, only a host with these tags should be selected": {with(small, func(w *lxd.Request) { w.Tags, w.NotTags = []string{"ssd"}, []string{"drain"} }),
			[]maas.VMHost{host("a", func(h *maas.VMHost) { h.Tags = []string{"ssd", "drain"} }), host("b"), host("c", func(h *maas.VMHost) { h.Tags = []string{"ssd"} })}, nil, nil, "c"},
		"When a host is being drained, another host should be selected":                        {small, []maas.VMHost{host("a", func(h *maas.VMHost) { h.Tags = []string{maas.DrainTag} }), host("b", using(13, 0))}, nil, nil, "b"},
		"When anti-affinity is required and a host has no sibling, it should be selected":      {with(small, func(w *lxd.Request) { w.Apart = true }), []maas.VMHost{host("a"), host("b", using(13, 0))}, []lxd.Peer{peer("1", "a", "az1")}, nil, "b"},
		"When the default storage pool has room, it should be selected":                        {small, []maas.VMHost{host("a", stores(map[string]int64{"default": 70e9, "nvme": 1e12}))}, nil, nil, "a default"},
		"When the default storage pool is full, the one with the most room should be selected": {small, []maas.VMHost{host("a", stores(map[string]int64{"default": 50e9, "hdd": 80e9, "nvme": 1e12}))}, nil, nil, "a nvme"},
		"When reservations fill a storage pool, another one should be selected": {small, []maas.VMHost{host("a", stores(map[string]int64{"default": 70e9, "hdd": 80e9}))},
			[]lxd.Peer{peer("1", "a", "az1", unreported, func(p *lxd.Peer) { p.Store = "default" })}, nil, "a hdd"},
		"When no host fits, the message should count what the hosts lack": {with(small, func(w *lxd.Request) { w.MemoryMiB, w.Zones = 16384, []string{"az1"} }),
			[]maas.VMHost{host("a", using(0, 60000)), host("b", using(0, 60000)), host("c", in("az9"))}, nil, nil,
			"InsufficientResources: asked for 2 cores, 16384 MiB of memory and a disk of 60 GB in zone az1; 3 hosts: 2 lack 16 GiB of memory, 1 is in zone az9"},
		"When there is no host, it should report that": {small, nil, nil, nil,
			"HostUnavailable: asked for 2 cores, 4096 MiB of memory and a disk of 60 GB, but MAAS has no LXD host on which it composes"},
		"When no host has the storage pool, the message should list the existing ones": {with(small, func(w *lxd.Request) { w.Store = "ceph" }), []maas.VMHost{host("a", stores(map[string]int64{"default": 1e12, "nvme": 1e12}))}, nil, nil,
			"StoragePoolNotFound: asked for 2 cores, 4096 MiB of memory and a disk of 60 GB; 1 host: 1 has no storage pool ceph; there are: default, nvme"},
		"When no host matches the request, the message should say why for each": {with(small, func(w *lxd.Request) {
			w.Project, w.ResourcePool, w.Architecture, w.Tags, w.NotTags = "", "gold", "arm64", []string{"ssd"}, []string{"slow"}
		}), []maas.VMHost{
			host("a"), host("b", func(h *maas.VMHost) { h.Pool.Name = "gold" }),
			host("c", func(h *maas.VMHost) { h.Pool.Name, h.Architectures = "gold", []string{"arm64/generic"} }),
			host("d", func(h *maas.VMHost) {
				h.Pool.Name, h.Architectures, h.Tags = "gold", []string{"arm64/generic"}, []string{"ssd", "slow"}
			}),
		}, nil, nil, "HostUnavailable: asked for 2 cores, 4096 MiB of memory and a disk of 60 GB in resource pool gold on hosts with tags ssd; 4 hosts: " +
			"1 is in resource pool default, 1 is of architecture amd64/generic, 1 lacks tag ssd, 1 has the unwanted tag slow"},
		"When the storage pool is full, the message should say how much space is missing": {with(small, func(w *lxd.Request) { w.Store = "nvme" }), []maas.VMHost{host("a", stores(map[string]int64{"default": 1e12, "nvme": 1e9}))}, nil, nil,
			"InsufficientResources: asked for 2 cores, 4096 MiB of memory and a disk of 60 GB; 1 host: 1 lacks 60 GB of disk in storage pool nvme"},
		"When anti-affinity is required and every host has a sibling, it should report that": {with(small, func(w *lxd.Request) { w.Apart = true }), []maas.VMHost{host("a")}, []lxd.Peer{peer("1", "a", "az1")}, nil,
			"InsufficientResources: asked for 2 cores, 4096 MiB of memory and a disk of 60 GB; 1 host: 1 has a machine of the pool"},
	} {
		t.Run(name, func(t *testing.T) {
			choice, refusal := lxd.Select(tc.request, lxd.Available(tc.hosts), now, tc.peers, tc.avoid)
			got := refusal.Reason + ": " + refusal.Message
			if choice != nil {
				got = choice.Host.Name
				if choice.Store != "" {
					got += " " + choice.Store
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestReserveAtOnce places twenty machines of one pool before the cache or MAAS show any of them.
func TestReserveAtOnce(t *testing.T) {
	var listed []maas.VMHost
	for i := range 5 {
		listed = append(listed, host(fmt.Sprintf("h%d", i)))
	}
	ledger, placed := lxd.NewLedger(), map[string]int{}
	var peers []lxd.Peer
	for i := range 20 {
		peers = append(peers, lxd.Peer{UID: fmt.Sprint(i), Group: "p"})
	}
	for i := range 20 {
		uid := fmt.Sprint(i)
		place, _, refusal, _ := ledger.Reserve(uid, "vm-"+uid, now, with(small, func(w *lxd.Request) { w.Cores = 4 }), lxd.Available(listed), now, known(peers...), nil)
		if place == nil {
			t.Fatalf("machine %d: %s", i, refusal.Message)
		}
		placed[place.Host]++
	}
	if diff := cmp.Diff(map[string]int{"h0": 4, "h1": 4, "h2": 4, "h3": 4, "h4": 4}, placed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if place, _, refusal, _ := ledger.Reserve("20", "vm-20", now, with(small, func(w *lxd.Request) { w.Cores = 4 }), lxd.Available(listed), now, known(append(peers, lxd.Peer{UID: "20"})...), nil); place != nil {
		t.Errorf("a 21st machine overbooks %s", place.Host)
	} else if refusal.Reason != lxd.ReasonInsufficientResources {
		t.Errorf("%s: %s", refusal.Reason, refusal.Message)
	}
	ledger.Forget("3")
	if place, _, _, _ := ledger.Reserve("20", "vm-20", now, with(small, func(w *lxd.Request) { w.Cores = 4 }), lxd.Available(listed), now, known(append(peers, lxd.Peer{UID: "20"})...), nil); place == nil {
		t.Error("a place that was given up is not free")
	}
}

// known returns a cache that contains these peers.
func known(peers ...lxd.Peer) func() ([]lxd.Peer, error) {
	return func() ([]lxd.Peer, error) { return peers, nil }
}

// TestReserveMeanwhile adds a second machine while the first one lists its peers: they go to different hosts.
func TestReserveMeanwhile(t *testing.T) {
	ledger, hosts, second := lxd.NewLedger(), lxd.Available([]maas.VMHost{host("a"), host("b")}), make(chan string, 1)
	one, two := lxd.Peer{UID: "1", Group: "p"}, lxd.Peer{UID: "2", Group: "p"}
	first, _, _, err := ledger.Reserve("1", "vm-1", now, small, hosts, now, func() ([]lxd.Peer, error) {
		go func() {
			place, _, _, _ := ledger.Reserve("2", "vm-2", now, small, hosts, now, known(one, two), nil)
			second <- place.Host
		}()
		select {
		case host := <-second:
			t.Errorf("the second got %s before the first was done", host)
			second <- host
		case <-time.After(50 * time.Millisecond): // The second reservation waits for the first.
		}
		return []lxd.Peer{one}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host := <-second; host == first.Host {
		t.Errorf("both go to %s", host)
	}
	refused := errors.New("no cache")
	if _, _, _, err := ledger.Reserve("3", "vm-3", now, small, hosts, now, func() ([]lxd.Peer, error) { return nil, refused }, nil); !errors.Is(err, refused) {
		t.Errorf("the error is %v", err)
	}
}

// TestReserveAfterRestart covers an empty cache: the reservations are read from the MaasMachines.
func TestReserveAfterRestart(t *testing.T) {
	hosts := lxd.Available([]maas.VMHost{host("a"), host("b")})
	written := []lxd.Peer{peer("1", "a", "az1", unreported), {UID: "2", Group: "p"}}
	place, _, _, _ := lxd.NewLedger().Reserve("2", "vm-2", now, small, hosts, now, known(written...), nil)
	if place == nil || place.Host != "b" {
		t.Fatalf("the second machine goes to %+v: what was reserved before the restart is forgotten", place)
	}
}

// TestComposedMeanwhile checks that a list read after a machine was composed includes the machine. For an earlier
// list, the reservation of the machine still counts.
func TestComposedMeanwhile(t *testing.T) {
	ledger, big := lxd.NewLedger(), with(small, func(w *lxd.Request) { w.Cores = 8 })
	peers := []lxd.Peer{{UID: "1"}, {UID: "2"}}
	if place, _, _, _ := ledger.Reserve("1", "vm-1", now, big, lxd.Available([]maas.VMHost{host("a")}), now, known(peers...), nil); place == nil {
		t.Fatal("the first machine has no place")
	}
	ledger.Composed("1", now.Add(time.Minute))
	if place, _, _, _ := ledger.Reserve("2", "vm-2", now.Add(time.Minute), with(big, func(w *lxd.Request) { w.Cores = 9 }), lxd.Available([]maas.VMHost{host("a")}), now, known(peers...), nil); place != nil {
		t.Error("a list from before it was composed does not include it: the host is overbooked")
	}
	later := now.Add(2 * time.Minute)
	if place, _, refusal, _ := ledger.Reserve("2", "vm-2", later, big, lxd.Available([]maas.VMHost{host("a", using(8, 0))}), later, known(peers...), nil); place == nil {
		t.Errorf("it counts twice: %s", refusal.Message)
	}
}
