// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/inventory"
	"github.com/openshift/hypershift/support/maas"
)

// fake counts calls. Each list calls the hook, in which a test may change the data.
type fake struct {
	mu       sync.Mutex
	machines map[string]maas.Machine
	err      error
	during   func()
	calls    map[string]int
	// each is the simulated duration per machine of a list by IDs; `patience` is the longest simulated call. printed
	// counts the rendered machines.
	clock    *clocktesting.FakePassiveClock
	each     time.Duration
	patience time.Duration
	printed  int
	hosts    []maas.VMHost
	// takes is the simulated duration of every other call.
	takes time.Duration
}

func (f *fake) count(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[name]++
	if f.takes > 0 {
		f.clock.SetTime(f.clock.Now().Add(f.takes))
	}
	return f.err
}

func (f *fake) WhoAmI(context.Context) (maas.User, error) {
	return maas.User{Username: "me"}, f.count("whoami")
}

func (f *fake) ListMachines(_ context.Context, filter maas.MachineFilter) ([]maas.Machine, error) {
	name := fmt.Sprint("list ", filter.Statuses, filter.Owners)
	if len(filter.SystemIDs) > 0 {
		name = byID
	}
	if err := f.count(name); err != nil {
		return nil, err
	}
	if f.clock != nil {
		f.clock.SetTime(f.clock.Now().Add(time.Duration(len(filter.SystemIDs)) * f.each))
	}
	if f.patience > 0 && time.Duration(len(filter.SystemIDs))*f.each > f.patience {
		return nil, &maas.UnreachableError{Err: context.DeadlineExceeded}
	}
	f.mu.Lock()
	var list []maas.Machine
	for _, m := range f.machines {
		asked := len(filter.SystemIDs) == 0 || slices.Contains(filter.SystemIDs, m.SystemID)
		if asked && len(filter.Statuses) == 0 && m.Owner == "me" || len(filter.Statuses) > 0 && m.Status == maas.StatusReady {
			f.printed++
			list = append(list, m)
		}
	}
	f.mu.Unlock()
	if f.during != nil {
		f.during()
	}
	return list, nil
}

func (f *fake) GetMachine(_ context.Context, id string) (*maas.Machine, error) {
	if err := f.count("get"); err != nil {
		return nil, err
	}
	m, ok := f.machines[id]
	if !ok {
		return nil, &maas.Error{StatusCode: 404, Message: "No Machine matches the given query."}
	}
	return &m, nil
}

func (f *fake) ListBootResources(context.Context, maas.ImageType) ([]maas.BootResource, error) {
	return nil, f.count("images")
}
func (f *fake) ListVMHosts(context.Context) ([]maas.VMHost, error) { return f.hosts, f.count("hosts") }

func (f *fake) GetVMHostParameters(_ context.Context, id int) (maas.VMHostParameters, error) {
	return maas.VMHostParameters{Project: fmt.Sprintf("project-%d", id)}, f.count("parameters")
}

func (f *fake) ListZones(context.Context) ([]maas.Zone, error) { return nil, f.count("zones") }
func (f *fake) ListPools(context.Context) ([]maas.Pool, error) { return nil, f.count("pools") }
func (f *fake) ListTags(context.Context) ([]maas.Tag, error)   { return nil, f.count("tags") }

func (f *fake) ListSubnets(context.Context) ([]maas.Subnet, error) { return nil, f.count("subnets") }
func (f *fake) GetVersion(context.Context) (maas.Version, error) {
	return maas.Version{}, nil
}

func (f *fake) ListAddressRanges(context.Context) ([]maas.AddressRange, error) {
	return nil, f.count("ranges")
}
func (f *fake) ListHeldAddresses(_ context.Context, subnet int) ([]maas.HeldAddress, error) {
	return []maas.HeldAddress{{IP: fmt.Sprintf("10.0.%d.1", subnet)}}, f.count(fmt.Sprint("held ", subnet))
}

func with(statuses map[string]maas.Status) *fake {
	f := &fake{machines: map[string]maas.Machine{}}
	for id, status := range statuses {
		owner := "me"
		if status == maas.StatusReady {
			owner = ""
		}
		f.machines[id] = maas.Machine{SystemID: id, Status: status, Owner: owner}
	}
	return f
}

const owned, byID = "list [] [me]", "list by id"

// site returns an inventory of n Deployed machines, and its fake MAAS with a clock.
func site(n int) (*inventory.Inventory, *fake) {
	statuses := map[string]maas.Status{}
	for i := range n {
		statuses[fmt.Sprint(i)] = maas.StatusDeployed
	}
	f := with(statuses)
	f.clock = clocktesting.NewFakePassiveClock(time.Now())
	return inventory.New(f, f.clock, inventory.Ages{}), f
}

// poll reads the machines at each interval for a duration, as reconciles do.
func poll(t *testing.T, i *inventory.Inventory, f *fake, n int, every, during time.Duration) {
	t.Helper()
	for end := f.clock.Now().Add(during); f.clock.Now().Before(end); {
		round := f.clock.Now()
		for id := range n {
			if _, err := i.Machine(t.Context(), fmt.Sprint(id), every); err != nil {
				t.Fatal(err)
			}
		}
		if next := round.Add(every); next.After(f.clock.Now()) {
			f.clock.SetTime(next)
		}
	}
}

func TestMachinesAreReadTogether(t *testing.T) {
	g := NewWithT(t)
	i, f := site(100)
	poll(t, i, f, 100, 10*time.Second, 9*time.Second)
	f.calls = nil
	poll(t, i, f, 100, 10*time.Second, 10*time.Second)
	g.Expect(f.calls).To(Equal(map[string]int{byID: 2}), "fifty with each call")
	f.printed = 0
	_, err := i.Machine(t.Context(), "7", 10*time.Second)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.printed).To(BeNumerically("<=", 50))
}

func TestOnlyWhatIsAskedForIsRead(t *testing.T) {
	g := NewWithT(t)
	i, f := site(1000)
	poll(t, i, f, 20, 2*time.Minute, time.Minute)
	f.calls, f.printed = nil, 0
	poll(t, i, f, 20, 2*time.Minute, 20*time.Minute)
	g.Expect(f.calls).To(Equal(map[string]int{byID: 10}))
	g.Expect(f.printed).To(Equal(20*10), "twenty machines, and not the thousand of the site")
}

func TestOneThatMovesLeavesTheOthersAlone(t *testing.T) {
	g := NewWithT(t)
	i, f := site(20)
	poll(t, i, f, 20, 2*time.Minute, time.Minute)
	f.calls, f.printed = nil, 0
	for n := range 120 {
		_, err := i.Machine(t.Context(), "7", 10*time.Second)
		g.Expect(err).NotTo(HaveOccurred())
		f.clock.SetTime(f.clock.Now().Add(10 * time.Second))
		if n%12 == 0 {
			for id := range 7 {
				_, err := i.Machine(t.Context(), fmt.Sprint(id), 2*time.Minute)
				g.Expect(err).NotTo(HaveOccurred())
			}
		}
	}
	g.Expect(f.calls).To(Equal(map[string]int{byID: 120}), "the others are read along with it")
	g.Expect(f.printed).To(BeNumerically("<=", 120+7*14+12*3), "every minute and a half; what nobody asks for any more, not for long")
}

func TestPollingTakesItsShareAndNoMore(t *testing.T) {
	g := NewWithT(t)
	i, f := site(1000)
	f.each = 25 * time.Millisecond
	start := f.clock.Now()
	poll(t, i, f, 1000, 10*time.Second, 20*time.Minute)
	busy := time.Duration(f.printed) * f.each
	g.Expect(busy.Seconds()/f.clock.Since(start).Seconds()).To(BeNumerically("<", 0.35), "a thousand machines that move keep a quarter of a worker busy")
	g.Expect(busy.Seconds() / f.clock.Since(start).Seconds()).To(BeNumerically(">", 0.15))
}

func TestSlowMAASIsNotUnreachableForEver(t *testing.T) {
	g := NewWithT(t)
	i, f := site(50)
	f.each, f.patience = time.Second, 20*time.Second
	var failures int
	for range 20 {
		for id := range 50 {
			if _, err := i.Machine(t.Context(), fmt.Sprint(id), time.Minute); err != nil {
				g.Expect(maas.IsUnreachable(err)).To(BeTrue())
				failures++
				f.clock.SetTime(f.clock.Now().Add(10 * time.Second))
			}
		}
		f.clock.SetTime(f.clock.Now().Add(time.Minute))
	}
	g.Expect(failures).To(BeNumerically("<", 10), "after a list that took too long, shorter ones are asked for")
	g.Expect(f.printed).To(BeNumerically(">", 2*50))
	for id := range 50 {
		m, err := i.Machine(t.Context(), fmt.Sprint(id), time.Minute)
		g.Expect(err).NotTo(HaveOccurred(), "each is known")
		g.Expect(m).NotTo(BeNil())
	}
}

func TestOwnedIsDear(t *testing.T) {
	g := NewWithT(t)
	i, f := site(1000)
	f.during = func() { f.clock.SetTime(f.clock.Now().Add(25 * time.Second)) }
	for range 60 {
		list, err := i.Owned(t.Context(), 2*time.Minute)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(HaveLen(1000))
		f.clock.SetTime(f.clock.Now().Add(time.Minute))
	}
	g.Expect(f.calls[owned]).To(Equal(2), "a list that takes 25 s is made twice in an hour")
	i.Store(&maas.Machine{SystemID: "7"})
	list, err := i.Owned(t.Context(), 2*time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(HaveLen(999), "what a call of ours brought back is newer than the list")
	_, err = i.Owned(t.Context(), 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.calls[owned]).To(Equal(3), "now means now")
}

func TestMayCompose(t *testing.T) {
	g := NewWithT(t)
	i, f := site(0)
	g.Expect(i.MayCompose(t.Context())).To(BeFalse())
	f.hosts = []maas.VMHost{{ID: 1}}
	f.clock.SetTime(f.clock.Now().Add(11 * time.Minute))
	g.Expect(i.MayCompose(t.Context())).To(BeTrue())
	i, f = site(0)
	f.err = &maas.Error{StatusCode: 410}
	g.Expect(i.MayCompose(t.Context())).To(BeFalse(), "this MAAS has none any more")
	i, f = site(0)
	f.err = errors.New("down")
	g.Expect(i.MayCompose(t.Context())).To(BeTrue(), "who knows")
}

func TestOwnWritesAreSeen(t *testing.T) {
	g := NewWithT(t)
	f, clock := with(map[string]maas.Status{"a": maas.StatusAllocated}), clocktesting.NewFakePassiveClock(time.Now())
	i := inventory.New(f, clock, inventory.Ages{})
	f.during = func() {
		clock.SetTime(clock.Now().Add(time.Second))
		i.Store(&maas.Machine{SystemID: "a", Status: maas.StatusDeploying, Owner: "me"})
		clock.SetTime(clock.Now().Add(time.Second))
	}
	m, err := i.Machine(t.Context(), "a", 10*time.Second)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Status).To(Equal(maas.StatusDeploying), "what a call brought back while the list was under way is newer than the list")
}

func TestMachinesThatAreNotOurs(t *testing.T) {
	g := NewWithT(t)
	f := with(map[string]maas.Status{"r": maas.StatusReady})
	i := inventory.New(f, clocktesting.NewFakePassiveClock(time.Now()), inventory.Ages{})
	m, err := i.Machine(t.Context(), "r", time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Status).To(Equal(maas.StatusReady))
	_, err = i.Machine(t.Context(), "none", time.Minute)
	g.Expect(maas.IsNotFound(err)).To(BeTrue())
	g.Expect(f.calls).To(Equal(map[string]int{byID: 2, "get": 2}))
	_, err = i.Machine(t.Context(), "r", time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.calls).To(Equal(map[string]int{byID: 2, "get": 2}), "what became of it is known for a minute")
	i.Forget("r")
	_, err = i.Machine(t.Context(), "r", time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.calls["get"]).To(Equal(3))
}

// unfiltered is a MAAS that has no filter by owner.
type unfiltered struct{ *fake }

func (u unfiltered) ListMachines(ctx context.Context, filter maas.MachineFilter) ([]maas.Machine, error) {
	if len(filter.Owners) > 0 {
		return nil, &maas.Error{StatusCode: 400, Fields: map[string][]string{"owner": {"No such constraint."}}}
	}
	all := slices.Collect(maps.Values(u.machines))
	return slices.DeleteFunc(all, func(m maas.Machine) bool {
		return len(filter.Statuses) > 0 && !slices.Contains(filter.Statuses, m.Status)
	}), u.count("list all")
}

func TestMAASWithoutOwnerFilter(t *testing.T) {
	g := NewWithT(t)
	f := with(map[string]maas.Status{"a": maas.StatusDeployed})
	f.machines["b"] = maas.Machine{SystemID: "b", Status: maas.StatusDeployed, Owner: "bob"}
	i := inventory.New(unfiltered{f}, clocktesting.NewFakePassiveClock(time.Now()), inventory.Ages{})
	list, err := i.Owned(t.Context(), time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(ConsistOf(f.machines["a"]), "what is another user's is none of ours")
	f.machines["c"] = maas.Machine{SystemID: "c", Status: maas.StatusAllocated, Owner: "me"}
	list, err = i.Allocated(t.Context(), time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(ConsistOf(f.machines["c"]), "nor is a whole site listed for the few that are not installed yet")
}

func TestFailuresAreShared(t *testing.T) {
	g := NewWithT(t)
	f, clock := with(nil), clocktesting.NewFakePassiveClock(time.Now())
	f.err = errors.New("down")
	i := inventory.New(f, clock, inventory.Ages{})
	for range 50 {
		_, err := i.Machine(t.Context(), "a", time.Minute)
		g.Expect(err).To(MatchError("down"))
	}
	g.Expect(f.calls).To(Equal(map[string]int{byID: 1}), "a MAAS that is down is asked once each few seconds")
	clock.SetTime(clock.Now().Add(6 * time.Second))
	f.err = nil
	_, err := i.Machine(t.Context(), "a", time.Minute)
	g.Expect(maas.IsNotFound(err)).To(BeTrue())
}

func TestReady(t *testing.T) {
	g := NewWithT(t)
	f, clock := with(map[string]maas.Status{"a": maas.StatusReady, "b": maas.StatusReady, "d": maas.StatusDeployed}), clocktesting.NewFakePassiveClock(time.Now())
	i := inventory.New(f, clock, inventory.Ages{})
	count := func() int {
		list, err := i.Ready(t.Context(), maas.MachineFilter{})
		g.Expect(err).NotTo(HaveOccurred())
		return len(list)
	}
	g.Expect(count()).To(Equal(2))
	i.Take("a")
	g.Expect(count()).To(Equal(1), "what was taken is not offered again from an old list")
	clock.SetTime(clock.Now().Add(time.Minute))
	g.Expect(count()).To(Equal(2))
	f.machines = nil
	clock.SetTime(clock.Now().Add(time.Minute))
	g.Expect(count()).To(Equal(0))
}

func TestClaim(t *testing.T) {
	g := NewWithT(t)
	i := inventory.New(with(nil), clocktesting.NewFakePassiveClock(time.Now()), inventory.Ages{})
	candidates := []maas.Machine{{SystemID: "a"}, {SystemID: "b"}}
	claims := make(chan string, 3)
	for range cap(claims) {
		go func() { claims <- i.Claim(candidates) }()
	}
	g.Expect([]string{<-claims, <-claims, <-claims}).To(ConsistOf("a", "b", ""), "nobody gets what another one claimed")
	i.Unclaim("b")
	g.Expect([]string{i.Claim(candidates), i.Claim(candidates)}).To(Equal([]string{"b", ""}), "a claim that was given up is free once")
}

func TestHeldAddresses(t *testing.T) {
	g := NewWithT(t)
	f, clock := with(nil), clocktesting.NewFakePassiveClock(time.Now())
	i := inventory.New(f, clock, inventory.Ages{})
	first := func(subnet int) string {
		held, err := i.HeldAddresses(t.Context(), subnet)
		g.Expect(err).NotTo(HaveOccurred())
		return held[0].IP
	}
	for range 3 {
		g.Expect(first(1)).To(Equal("10.0.1.1"))
		g.Expect(first(2)).To(Equal("10.0.2.1"), "each subnet has its own")
		_, err := i.Subnets(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		_, err = i.AddressRanges(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(f.calls).To(Equal(map[string]int{"held 1": 1, "held 2": 1, "subnets": 1, "ranges": 1}))
	i.ForgetHeldAddresses(1)
	first(1)
	first(2)
	g.Expect(f.calls).To(And(HaveKeyWithValue("held 1", 2), HaveKeyWithValue("held 2", 1)))
	clock.SetTime(clock.Now().Add(11 * time.Second))
	first(2)
	g.Expect(f.calls).To(HaveKeyWithValue("held 2", 2))
}

func TestCancelledWaiterGivesUp(t *testing.T) {
	g := NewWithT(t)
	f := with(nil)
	hold, inside := make(chan struct{}), make(chan struct{})
	f.during = func() { close(inside); <-hold }
	i := inventory.New(f, clocktesting.NewFakePassiveClock(time.Now()), inventory.Ages{})
	done := make(chan struct{})
	go func() { defer close(done); _, _ = i.Ready(t.Context(), maas.MachineFilter{}) }()
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := i.Ready(ctx, maas.MachineFilter{})
	g.Expect(err).To(MatchError(context.Canceled))
	close(hold)
	<-done
}

func TestSetAside(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	s := inventory.NewSetAside(clock)
	s.Add("a", clock.Now().Add(time.Hour))
	s.Add("a", clock.Now().Add(time.Minute))
	g.Expect(s.Has("a")).To(BeTrue())
	g.Expect(s.Has("b")).To(BeFalse())
	g.Expect(s.Any()).To(BeTrue())
	clock.SetTime(clock.Now().Add(30 * time.Minute))
	g.Expect(s.Has("a")).To(BeTrue(), "the longer time counts")
	clock.SetTime(clock.Now().Add(30 * time.Minute))
	g.Expect(s.Any()).To(BeFalse())
	g.Expect(s.Has("a")).To(BeFalse())
}
