// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/inventory"
	"github.com/openshift/hypershift/support/maas"
)

// asks reads one kind of data through the inventory.
type asks func(ctx context.Context, i *inventory.Inventory) error

// of drops the result and returns the error.
func of[T any](_ T, err error) error { return err }

// kinds lists all shared data except machines, each with its name in the fake and the age at which it is read again.
var kinds = []struct {
	name string
	age  time.Duration
	ask  asks
}{
	{"images", time.Minute, func(ctx context.Context, i *inventory.Inventory) error { return of(i.Images(ctx)) }},
	{"pools", time.Minute, func(ctx context.Context, i *inventory.Inventory) error { return of(i.Pools(ctx)) }},
	{"tags", time.Minute, func(ctx context.Context, i *inventory.Inventory) error { return of(i.Tags(ctx)) }},
	{"subnets", time.Minute, func(ctx context.Context, i *inventory.Inventory) error { return of(i.Subnets(ctx)) }},
	{"ranges", time.Minute, func(ctx context.Context, i *inventory.Inventory) error { return of(i.AddressRanges(ctx)) }},
	{"zones", 20 * time.Second, func(ctx context.Context, i *inventory.Inventory) error { return of(i.Zones(ctx, 20*time.Second)) }},
	{"list [Ready] []", 10 * time.Second, func(ctx context.Context, i *inventory.Inventory) error { return of(i.Survey(ctx)) }},
	{"parameters", 10 * time.Minute, func(ctx context.Context, i *inventory.Inventory) error { return of(i.Project(ctx, 7)) }},
	{"hosts", 3 * time.Minute, func(ctx context.Context, i *inventory.Inventory) error {
		_, _, err := i.VMHosts(ctx, 3*time.Minute)
		return err
	}},
}

// TestShared checks that data is read once for many reconciles, until it reaches its maximum age.
func TestShared(t *testing.T) {
	for _, kind := range kinds {
		t.Run("When many reconciles need "+kind.name+", it should be read once for all until it is old", func(t *testing.T) {
			g := NewWithT(t)
			f, clock := with(nil), clocktesting.NewFakePassiveClock(time.Now())
			i := inventory.New(f, clock, inventory.Ages{})
			for range 5 {
				g.Expect(kind.ask(t.Context(), i)).To(Succeed())
			}
			clock.SetTime(clock.Now().Add(kind.age - time.Millisecond))
			g.Expect(kind.ask(t.Context(), i)).To(Succeed())
			g.Expect(f.calls).To(Equal(map[string]int{kind.name: 1}))
			clock.SetTime(clock.Now().Add(time.Millisecond))
			g.Expect(kind.ask(t.Context(), i)).To(Succeed())
			g.Expect(f.calls).To(Equal(map[string]int{kind.name: 2}))
		})
		t.Run("When "+kind.name+" cannot be read, all reconciles should get the error, and MAAS should be called again seconds later", func(t *testing.T) {
			g := NewWithT(t)
			f, clock := with(nil), clocktesting.NewFakePassiveClock(time.Now())
			i := inventory.New(f, clock, inventory.Ages{})
			f.err = errors.New("down")
			for range 5 {
				g.Expect(kind.ask(t.Context(), i)).To(MatchError("down"))
			}
			clock.SetTime(clock.Now().Add(5*time.Second - time.Millisecond))
			g.Expect(kind.ask(t.Context(), i)).To(MatchError("down"))
			g.Expect(f.calls).To(Equal(map[string]int{kind.name: 1}))
			clock.SetTime(clock.Now().Add(time.Millisecond))
			f.err = nil
			g.Expect(kind.ask(t.Context(), i)).To(Succeed())
		})
	}
}

func TestAges(t *testing.T) {
	t.Run("When ages are set, they should override the defaults", func(t *testing.T) {
		g := NewWithT(t)
		f, clock := with(nil), clocktesting.NewFakePassiveClock(time.Now())
		i := inventory.New(f, clock, inventory.Ages{Ready: time.Second, Names: 2 * time.Second, Failure: 3 * time.Second})
		read := func() {
			t.Helper()
			g.Expect(of(i.Images(t.Context()))).To(Succeed())
			g.Expect(of(i.Survey(t.Context()))).To(Succeed())
		}
		read()
		clock.SetTime(clock.Now().Add(time.Second))
		read()
		g.Expect(f.calls).To(Equal(map[string]int{"images": 1, "list [Ready] []": 2}))
		clock.SetTime(clock.Now().Add(time.Second))
		read()
		g.Expect(f.calls).To(Equal(map[string]int{"images": 2, "list [Ready] []": 3}))
		f.err = errors.New("down")
		g.Expect(of(i.Tags(t.Context()))).To(MatchError("down"))
		f.err = nil
		clock.SetTime(clock.Now().Add(2 * time.Second))
		g.Expect(of(i.Tags(t.Context()))).To(MatchError("down"))
		clock.SetTime(clock.Now().Add(time.Second))
		g.Expect(of(i.Tags(t.Context()))).To(Succeed())
	})
	t.Run("When MAAS takes long to answer, it should not be called again for that long", func(t *testing.T) {
		g := NewWithT(t)
		f, clock := with(nil), clocktesting.NewFakePassiveClock(time.Now())
		f.clock, f.takes = clock, 2*time.Minute
		i := inventory.New(f, clock, inventory.Ages{})
		g.Expect(of(i.Tags(t.Context()))).To(Succeed())
		clock.SetTime(clock.Now().Add(2*time.Minute - time.Millisecond))
		g.Expect(of(i.Tags(t.Context()))).To(Succeed())
		g.Expect(f.calls).To(Equal(map[string]int{"tags": 1}))
		clock.SetTime(clock.Now().Add(time.Millisecond))
		g.Expect(of(i.Tags(t.Context()))).To(Succeed())
		g.Expect(f.calls).To(Equal(map[string]int{"tags": 2}))
	})
	t.Run("When a machine takes long to read, its data should be reused for three times as long", func(t *testing.T) {
		g := NewWithT(t)
		i, f := site(1)
		f.each = time.Second
		ask := func() {
			t.Helper()
			g.Expect(of(i.Machine(t.Context(), "0", time.Millisecond))).To(Succeed())
		}
		ask()
		f.clock.SetTime(f.clock.Now().Add(3*time.Second - time.Millisecond))
		ask()
		g.Expect(f.calls).To(Equal(map[string]int{byID: 1}))
		f.clock.SetTime(f.clock.Now().Add(time.Millisecond))
		ask()
		g.Expect(f.calls).To(Equal(map[string]int{byID: 2}))
	})
	t.Run("When MAAS sends Retry-After, it should not be called again before that time", func(t *testing.T) {
		g := NewWithT(t)
		f, clock := with(nil), clocktesting.NewFakePassiveClock(time.Now())
		i := inventory.New(f, clock, inventory.Ages{})
		f.err = &maas.Error{StatusCode: 503, RetryAfter: time.Minute}
		g.Expect(of(i.Tags(t.Context()))).To(HaveOccurred())
		f.err = nil
		clock.SetTime(clock.Now().Add(59 * time.Second))
		g.Expect(of(i.Tags(t.Context()))).To(HaveOccurred())
		clock.SetTime(clock.Now().Add(time.Second))
		g.Expect(of(i.Tags(t.Context()))).To(Succeed())
	})
}

func TestSurvey(t *testing.T) {
	g := NewWithT(t)
	f, clock := with(map[string]maas.Status{"a": maas.StatusReady, "b": maas.StatusReady, "d": maas.StatusDeployed}), clocktesting.NewFakePassiveClock(time.Now())
	i := inventory.New(f, clock, inventory.Ages{})
	f.during = func() { clock.SetTime(clock.Now().Add(6 * time.Second)) }
	for range 9 {
		list, err := i.Survey(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(HaveLen(2))
		clock.SetTime(clock.Now().Add(time.Minute))
	}
	g.Expect(f.calls).To(Equal(map[string]int{"list [Ready] []": 1}), "a list that takes 6 s is not made again for ten minutes")
	i.Take("a")
	list, err := i.Survey(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(ConsistOf(HaveField("SystemID", "b")))
}

func TestReadyOfEachFilter(t *testing.T) {
	g := NewWithT(t)
	f, clock := with(map[string]maas.Status{"a": maas.StatusReady}), clocktesting.NewFakePassiveClock(time.Now())
	i := inventory.New(f, clock, inventory.Ages{})
	f.during = func() { clock.SetTime(clock.Now().Add(10 * time.Second)) }
	for range 4 {
		for _, zone := range []string{"one", "two"} {
			g.Expect(of(i.Ready(t.Context(), maas.MachineFilter{Zones: []string{zone}}))).To(Succeed())
		}
	}
	g.Expect(f.calls).To(Equal(map[string]int{"list [Ready] []": 2}), "what fits one pool need not fit another, and each list rests four times as long as it took")
	clock.SetTime(clock.Now().Add(40 * time.Second))
	g.Expect(of(i.Ready(t.Context(), maas.MachineFilter{Zones: []string{"two"}}))).To(Succeed())
	g.Expect(f.calls).To(Equal(map[string]int{"list [Ready] []": 3}))
}

func TestProject(t *testing.T) {
	g := NewWithT(t)
	i := inventory.New(with(nil), clocktesting.NewFakePassiveClock(time.Now()), inventory.Ages{})
	g.Expect(i.Project(t.Context(), 1)).To(Equal("project-1"))
	g.Expect(i.Project(t.Context(), 2)).To(Equal("project-2"), "each host has its own")
}

func TestVMHosts(t *testing.T) {
	g := NewWithT(t)
	f, clock := with(nil), clocktesting.NewFakePassiveClock(time.Now())
	f.hosts = []maas.VMHost{{ID: 1}}
	i := inventory.New(f, clock, inventory.Ages{})
	began := clock.Now()
	hosts, at, err := i.VMHosts(t.Context(), time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(hosts).To(Equal(f.hosts))
	clock.SetTime(began.Add(time.Second))
	_, again, err := i.VMHosts(t.Context(), time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]time.Time{at, again}).To(HaveEach(began), "what a machine composed since then uses is not in it")
}

func TestRefresh(t *testing.T) {
	g := NewWithT(t)
	f, clock := with(map[string]maas.Status{"a": maas.StatusAllocated}), clocktesting.NewFakePassiveClock(time.Now())
	i := inventory.New(f, clock, inventory.Ages{})
	status := func(m *maas.Machine, err error) maas.Status {
		t.Helper()
		g.Expect(err).NotTo(HaveOccurred())
		return m.Status
	}
	g.Expect(status(i.Machine(t.Context(), "a", time.Hour))).To(Equal(maas.StatusAllocated))
	f.machines["a"] = maas.Machine{SystemID: "a", Status: maas.StatusDeploying, Owner: "me"}
	g.Expect(status(i.Machine(t.Context(), "a", time.Hour))).To(Equal(maas.StatusAllocated))
	g.Expect(status(i.Refresh(t.Context(), "a"))).To(Equal(maas.StatusDeploying))
	clock.SetTime(clock.Now().Add(time.Minute))
	g.Expect(status(i.Machine(t.Context(), "a", time.Hour))).To(Equal(maas.StatusDeploying), "what was read is known to all")
	f.err = errors.New("down")
	g.Expect(of(i.Refresh(t.Context(), "a"))).To(MatchError("down"))
	f.err = nil
	f.machines["a"] = maas.Machine{SystemID: "a", Status: maas.StatusDeployed, Owner: "me"}
	g.Expect(status(i.Machine(t.Context(), "a", time.Hour))).To(Equal(maas.StatusDeployed), "what could not be read is not known any more")
}
