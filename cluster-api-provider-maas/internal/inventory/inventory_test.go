package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/inventory"
	"github.com/openshift/hypershift/support/maas"
)

// fake counts what is asked of it. A list passes through the hook, during which the world may change.
type fake struct {
	mu       sync.Mutex
	machines map[string]maas.Machine
	err      error
	during   func()
	calls    map[string]int
}

func (f *fake) count(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[name]++
	return f.err
}

func (f *fake) WhoAmI(context.Context) (maas.User, error) {
	return maas.User{Username: "me"}, f.count("whoami")
}

func (f *fake) ListMachines(_ context.Context, filter maas.MachineFilter) ([]maas.Machine, error) {
	if err := f.count(fmt.Sprint("list ", filter.Statuses, filter.Owners)); err != nil {
		return nil, err
	}
	f.mu.Lock()
	var list []maas.Machine
	for _, m := range f.machines {
		if len(filter.Statuses) == 0 && m.Owner == "me" || len(filter.Statuses) > 0 && m.Status == maas.StatusReady {
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
func (f *fake) ListZones(context.Context) ([]maas.Zone, error) { return nil, f.count("zones") }
func (f *fake) ListPools(context.Context) ([]maas.Pool, error) { return nil, f.count("pools") }
func (f *fake) ListTags(context.Context) ([]maas.Tag, error)   { return nil, f.count("tags") }

func (f *fake) ListSubnets(context.Context) ([]maas.Subnet, error) { return nil, f.count("subnets") }
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

const owned = "list [] [me]"

func TestOneListServesAll(t *testing.T) {
	g := NewWithT(t)
	statuses := map[string]maas.Status{}
	for i := range 1000 {
		statuses[fmt.Sprint(i)] = maas.StatusDeployed
	}
	f, clock := with(statuses), clocktesting.NewFakePassiveClock(time.Now())
	i := inventory.New(f, clock, inventory.Ages{})
	var wait sync.WaitGroup
	for id := range statuses {
		wait.Go(func() {
			m, err := i.Machine(t.Context(), id, 10*time.Second)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.SystemID).To(Equal(id))
		})
	}
	wait.Wait()
	g.Expect(f.calls).To(Equal(map[string]int{"whoami": 1, owned: 1}))
	clock.SetTime(clock.Now().Add(9 * time.Second))
	_, err := i.Machine(t.Context(), "7", 10*time.Second)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.calls[owned]).To(Equal(1))
	clock.SetTime(clock.Now().Add(2 * time.Second))
	_, err = i.Machine(t.Context(), "7", 10*time.Second)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.calls[owned]).To(Equal(2))
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
	g.Expect(f.calls).To(Equal(map[string]int{"whoami": 1, owned: 1, "get": 2}))
	i.Forget("r")
	_, err = i.Machine(t.Context(), "r", time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.calls["get"]).To(Equal(3))
}

// unfiltered is a MAAS that knows no filter by owner.
type unfiltered struct{ *fake }

func (u unfiltered) ListMachines(ctx context.Context, filter maas.MachineFilter) ([]maas.Machine, error) {
	if len(filter.Owners) > 0 {
		return nil, &maas.Error{StatusCode: 400, Fields: map[string][]string{"owner": {"No such constraint."}}}
	}
	return u.fake.ListMachines(ctx, filter)
}

func TestMAASWithoutOwnerFilter(t *testing.T) {
	g := NewWithT(t)
	i := inventory.New(unfiltered{with(map[string]maas.Status{"a": maas.StatusDeployed})}, clocktesting.NewFakePassiveClock(time.Now()), inventory.Ages{})
	list, err := i.Owned(t.Context(), time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(HaveLen(1))
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
	g.Expect(f.calls).To(Equal(map[string]int{"whoami": 1}), "a MAAS that is down is asked once each few seconds")
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
		list, err := i.Ready(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		return len(list)
	}
	g.Expect(count()).To(Equal(2))
	i.Take("a")
	g.Expect(count()).To(Equal(1), "what was taken is not offered again from an old list")
	clock.SetTime(clock.Now().Add(time.Minute))
	g.Expect(count()).To(Equal(2))
	f.machines = nil
	i.ForgetReady()
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
	go func() { defer close(done); _, _ = i.Ready(t.Context()) }()
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := i.Ready(ctx)
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
