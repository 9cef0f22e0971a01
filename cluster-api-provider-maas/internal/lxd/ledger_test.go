// SPDX-License-Identifier: Apache-2.0

package lxd_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/maas"
)

// bench is a Ledger with the parameters that are the same for all reservations.
type bench struct {
	*lxd.Ledger
	t     *testing.T
	hosts []lxd.Host
	asOf  time.Time
}

func newBench(t *testing.T, hosts ...maas.VMHost) *bench {
	t.Helper()
	return &bench{Ledger: lxd.NewLedger(), t: t, hosts: lxd.Available(hosts), asOf: now}
}

// place reserves a host for a machine while the cache shows these peers. It returns the host, or "" if none matches.
func (b *bench) place(uid string, request lxd.Request, peers ...lxd.Peer) string {
	b.t.Helper()
	place, choice, refusal, err := b.Reserve(uid, "vm-"+uid, now, request, b.hosts, b.asOf, known(peers...), nil)
	switch {
	case err != nil:
		b.t.Fatal(err)
	case (place == nil) != (choice == nil) || (place == nil) != (refusal.Reason != ""):
		b.t.Fatalf("place %+v, choice %+v and refusal %+v are at odds", place, choice, refusal)
	case place == nil:
		return ""
	}
	return place.Host
}

// cores returns a request for n of the sixteen cores of a host.
func cores(n int) lxd.Request { return with(small, func(w *lxd.Request) { w.Cores = n }) }

// bare returns a MaasMachine as the cache shows it before it has a placement.
func bare(uid string) lxd.Peer { return lxd.Peer{UID: uid, Group: "p"} }

// TestPlaceIsWrittenDown checks that a placement contains everything that a later process needs.
func TestPlaceIsWrittenDown(t *testing.T) {
	t.Parallel()
	h := host("h", in("az3"), stores(map[string]int64{"default": 1e9, "nvme": 1e12}))
	h.ID = 42
	hosts := lxd.Available([]maas.VMHost{h})
	hosts[0].Project = "maas-project"
	place, choice, _, err := lxd.NewLedger().Reserve("1", "vm-1", now, small, hosts, now, known(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &lxd.Placement{Host: "h", HostID: 42, Zone: "az3", Project: "maas-project", Hostname: "vm-1", Cores: 2, MemoryMiB: 4096, DiskGB: 60, Store: "nvme", At: now}
	if diff := cmp.Diff(want, place); diff != "" {
		t.Errorf("place (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&lxd.Choice{Host: hosts[0], Store: "nvme"}, choice); diff != "" {
		t.Errorf("choice (-want +got):\n%s", diff)
	}
}

// TestEachPartIsReserved checks that resources reserved for one machine are unavailable to the next, before the cache
// or MAAS shows them.
func TestEachPartIsReserved(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]lxd.Request{
		"cores":  cores(9),
		"memory": with(small, func(w *lxd.Request) { w.MemoryMiB = 40000 }),
		"disk":   with(small, func(w *lxd.Request) { w.DiskGB = 600 }),
		"store":  with(small, func(w *lxd.Request) { w.DiskGB, w.Store = 60, "nvme" }),
	} {
		t.Run("When a host has enough "+name+" for one machine, it should get only one", func(t *testing.T) {
			t.Parallel()
			b := newBench(t, host("a", stores(map[string]int64{"default": 1e12, "nvme": 100e9})))
			if got := b.place("1", request, bare("1"), bare("2")); got != "a" {
				t.Fatalf("the first goes to %q", got)
			}
			if got := b.place("2", request, bare("1"), bare("2")); got != "" {
				t.Errorf("the second overbooks %s", got)
			}
		})
	}
}

// TestReserveAgain checks that the reservation of a machine does not count against itself, whether the cache shows it
// or not.
func TestReserveAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, host("a"))
	for name, shown := range map[string]lxd.Peer{"the cache lacks its place": bare("1"), "the cache shows its place": peer("1", "a", "az1", unreported, func(p *lxd.Peer) { p.Cores, p.At = 16, now })} {
		if got := b.place("1", cores(16), shown); got != "a" {
			t.Errorf("%s: it goes to %q", name, got)
		}
	}
}

// TestRefusedGivesUp checks that a machine without a host loses its reservation.
func TestRefusedGivesUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, host("a"))
	if got := b.place("1", cores(10), bare("1"), bare("2")); got != "a" {
		t.Fatalf("the first goes to %q", got)
	}
	if got := b.place("1", cores(17), bare("1"), bare("2")); got != "" {
		t.Fatalf("seventeen cores on %s", got)
	}
	if got := b.place("2", cores(10), bare("1"), bare("2")); got != "a" {
		t.Error("the place of one that was refused is kept")
	}
}

// TestGoneIsForgotten checks that the reservation of a MaasMachine that is not in the cache is dropped, so the cache
// does not grow indefinitely.
func TestGoneIsForgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t, host("a"))
	if got := b.place("1", cores(10), bare("1"), bare("2")); got != "a" {
		t.Fatalf("the first goes to %q", got)
	}
	if got := b.place("2", cores(10), bare("2")); got != "a" {
		t.Error("a MaasMachine that is gone keeps its place")
	}
	// If a stale cache shows the UID again, it must not have a reservation.
	b.Forget("2")
	if got := b.place("3", cores(10), bare("1"), bare("3")); got != "a" {
		t.Error("what was forgotten came back")
	}
}

// TestLeavingMeanwhile checks that a machine that was placed a moment ago and is now deleted uses resources, but does
// not count for anti-affinity.
func TestLeavingMeanwhile(t *testing.T) {
	t.Parallel()
	leaving := bare("1")
	leaving.Leaving = true
	b := newBench(t, host("a"), host("b", using(8, 0)))
	if got := b.place("1", small, bare("1"), bare("2")); got != "a" {
		t.Fatalf("the first goes to %q", got)
	}
	if got := b.place("2", small, bare("1"), bare("2")); got != "b" {
		t.Errorf("beside a sibling it goes to %q", got)
	}
	if got := b.place("2", small, leaving, bare("2")); got != "a" {
		t.Errorf("beside a sibling that leaves it goes to %q", got)
	}
	if got := b.place("2", cores(15), leaving, bare("2")); got != "" {
		t.Errorf("the room of one that leaves is given away on %s", got)
	}
}

// TestNewerPlaceCounts checks that the later of the cached entry and the annotation is used.
func TestNewerPlaceCounts(t *testing.T) {
	t.Parallel()
	apart := func(w *lxd.Request) { w.Apart = true }
	shown := func(host string, at time.Time) lxd.Peer {
		return peer("1", host, "az1", func(p *lxd.Peer) { p.At = at })
	}
	for name, tc := range map[string]struct {
		shown lxd.Peer
		want  string
	}{
		"When the cached annotation is older, the placement cache should be used":       {shown("b", now.Add(-time.Minute)), "b"},
		"When another provider placed the machine later, its annotation should be used": {shown("b", now.Add(time.Minute)), "a"},
		"When the annotation shows the same host, that host should be used":             {shown("a", now), "b"},
		"When there is no annotation yet, the placement cache should be used":           {bare("1"), "b"},
		"When both have the same time, the annotation should be used":                   {shown("b", now), "a"},
		"When the annotation is invalid, the placement cache should be used":            {lxd.Peer{UID: "1", Group: "p", Placement: lxd.Placement{Host: "b"}}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, host("a"), host("b", using(8, 0)))
			if got := b.place("1", small, bare("1"), bare("2")); got != "a" {
				t.Fatalf("the first goes to %q", got)
			}
			if got := b.place("2", with(small, apart), tc.shown, bare("2")); got != tc.want {
				t.Errorf("the second goes to %q, and not to %q", got, tc.want)
			}
		})
	}
}

// TestComposedBeforeTheCacheKnows checks that a machine is not counted twice if MAAS already reports it, while the
// cached annotation has only the request.
func TestComposedBeforeTheCacheKnows(t *testing.T) {
	t.Parallel()
	asked := peer("1", "a", "az1", unreported, func(p *lxd.Peer) { p.Cores, p.At = 8, now })
	b := newBench(t, host("a"))
	if got := b.place("1", cores(8), bare("1"), bare("2")); got != "a" {
		t.Fatalf("the first goes to %q", got)
	}
	b.Composed("1", now.Add(time.Minute))
	b.Composed("9", now.Add(time.Minute)) // No reservation has this UID.
	b.hosts, b.asOf = lxd.Available([]maas.VMHost{host("a", using(8, 0))}), now.Add(2*time.Minute)
	if got := b.place("2", cores(8), asked, bare("2")); got != "a" {
		t.Error("a machine that MAAS reports counts twice")
	}
	if got := b.place("3", cores(8), asked, bare("3"), bare("9")); got != "a" {
		t.Error("a machine without a place takes room")
	}
}

// TestComposedAsWrittenDown checks that the recorded compose time takes precedence over the cached time.
func TestComposedAsWrittenDown(t *testing.T) {
	t.Parallel()
	b := newBench(t, host("a"))
	if got := b.place("1", cores(8), bare("1"), bare("2")); got != "a" {
		t.Fatalf("the first goes to %q", got)
	}
	b.Composed("1", now.Add(-time.Minute))
	later := peer("1", "a", "az1", func(p *lxd.Peer) { p.Cores, p.At, p.Composed = 8, now, now.Add(time.Minute) })
	if got := b.place("2", cores(9), later, bare("2")); got != "" {
		t.Error("a list from before it was composed does not include it: the host is overbooked")
	}
}
