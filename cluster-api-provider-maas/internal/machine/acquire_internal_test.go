// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestJitter checks that a delay is never shorter than the given one, and at most a fifth longer.
func TestJitter(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]int{}
	for range 2000 {
		seen[jitter(50)]++
	}
	for d := time.Duration(50); d <= 60; d++ {
		if seen[d] == 0 {
			t.Errorf("it is never %d", d)
		}
		delete(seen, d)
	}
	if len(seen) > 0 {
		t.Errorf("it is %v", seen)
	}
}

// attempted sets the time of an allocation attempt, counted back from the start of the simulation.
func attempted(ago time.Duration) func(*infrav1.MaasMachine) {
	return annotated(AttemptAnnotation, simtest.Start.Add(-ago).Format(time.RFC3339Nano))
}

// TestAcquire checks that an existing allocation is adopted first, and that no machine is requested that could not be
// used.
func TestAcquire(t *testing.T) {
	t.Parallel()
	refuse := func(operation string) func(*rack) {
		return func(k *rack) {
			simtest.Refuse(k.t, k.site.Simulator, operation, "", http.StatusServiceUnavailable, "busy")
		}
	}
	image := func(name string) func(*infrav1.MaasMachine) {
		return func(m *infrav1.MaasMachine) { m.Spec.Image = name }
	}
	for name, tc := range map[string]struct {
		change func(*infrav1.MaasMachine)
		set    func(*rack)
		held   string
		reason string
		again  time.Duration
		asks   int
	}{
		"a machine is available":                            {held: "ready1", asks: 1},
		"the MaasMachine has a machine":                     {change: running("x"), set: refuse(""), held: "x"},
		"the cluster is being restored":                     {set: func(k *rack) { annotateCluster(k.infra, infrav1.RestoredFromAnnotation, "old") }, reason: ReasonRestoring, again: 10 * time.Second},
		"a virtual machine is requested":                    {change: func(m *infrav1.MaasMachine) { m.Spec.ProvisioningMode = infrav1.ProvisioningModeLXD }, reason: lxd.ReasonHostUnavailable, again: 10 * time.Second},
		"an answer was lost, but the machine was allocated": {change: attempted(0), set: func(k *rack) { theirs(k, "self") }, held: "ready1"},
		"an answer was lost a moment ago":                   {change: attempted(0), reason: ReasonAllocationUncertain, again: 5 * time.Second},
		"the answer may still arrive":                       {change: attempted(time.Minute - 1), reason: ReasonAllocationUncertain, again: 1},
		"the answer can no longer arrive":                   {change: attempted(time.Minute), held: "ready1", asks: 1},
		"MAAS lacks the image":                              {change: image("ubuntu/jammy"), reason: ReasonImageNotFound, again: 15 * time.Second},
		"MAAS does not list machines":                       {set: refuse("machines.read"), reason: ReasonUnavailable, again: 15 * time.Second},
		"MAAS does not list images":                         {set: refuse("boot-resources.read"), reason: ReasonUnavailable, again: 15 * time.Second},
		"another MaasMachine has the machine":               {set: func(k *rack) { theirs(k, "other") }, reason: ReasonNoCapacity, again: 10 * time.Second, asks: 1},
	} {
		t.Run("When "+name+", it should allocate, adopt or wait", func(t *testing.T) {
			t.Parallel()
			self := sibling("self")
			maybe(tc.change, self)
			k := seeker(t, "alice", self, simtest.Machine{ID: "ready1"})
			maybe(tc.set, k)
			result, err := k.acquire(t.Context(), k.scope)
			k.expectReason(result, err, tc.reason, tc.again)
			if got := k.systemID(); got != tc.held {
				t.Errorf("it has %q", got)
			}
			if n := k.asked("machines.allocate"); n != tc.asks {
				t.Errorf("MAAS was asked for %d machines", n)
			}
		})
	}
}

func annotateCluster(infra *infrav1.MaasCluster, key, value string) {
	if infra.Annotations == nil {
		infra.Annotations = map[string]string{}
	}
	infra.Annotations[key] = value
}

// theirs allocates the machine ready1 to alice, for the MaasMachine with this UID.
func theirs(k *rack, uid string) {
	k.site.Change("ready1", func(m *inventory.Machine) {
		m.Status, m.Owner, m.AgentName = status.Allocated, "alice", maas.AllocationKey(uid)
	})
}

// TestFurthestStays checks that of several allocations with lost answers, the one with the most progress stays.
func TestFurthestStays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		less, more status.Status
	}{
		"one is being deployed and one is only allocated": {status.Allocated, status.Deploying},
		"one runs and one is being deployed":              {status.Deploying, status.Deployed},
		"one failed":                                      {status.FailedDeployment, status.Allocated},
	} {
		t.Run("When "+name+", it should keep the one with the most progress", func(t *testing.T) {
			t.Parallel()
			k := seeker(t, "alice", sibling("self"), allocated("a", "self", tc.less), allocated("b", "self", tc.more))
			if ok, err := k.adopt(t.Context(), k.scope); !ok || err != nil {
				t.Fatal(err)
			}
			if k.observed.SystemID != "b" || deref(k.stored().Spec.SystemID) != "b" || !k.proven {
				t.Errorf("it has %s, and wrote down %s", k.observed.SystemID, deref(k.stored().Spec.SystemID))
			}
			if m := k.site.Has("a"); m.Status == tc.less {
				t.Errorf("the other one stays %s", m.Status)
			}
			k.expectEvents("MachineAdopted", "MachineReleasing")
		})
	}
	k := seeker(t, "alice", sibling("self"), simtest.Machine{ID: "a"})
	if ok, err := k.adopt(t.Context(), k.scope); ok || err != nil {
		t.Errorf("none is taken up: %t, %v", ok, err)
	}
}

// TestAllocationIsNotedFirst checks that the attempt, the MAAS user and the key are recorded before the call, for the
// reconcile after a crash.
func TestAllocationIsNotedFirst(t *testing.T) {
	t.Parallel()
	k := seeker(t, "alice", sibling("self"), simtest.Machine{ID: "ready1"})
	k.site.Clock.SetTime(simtest.Start.In(time.FixedZone("", 7200)))
	simtest.Fault(t, k.site.Simulator, faults.Rule{Kind: faults.Error, Operation: "machines.allocate", Status: http.StatusInternalServerError, Count: 1})
	if _, err := k.allocate(t.Context(), k.scope, placement.Request{}, ""); err == nil || k.reason() == "" {
		t.Errorf("it is %+v, %v", k.findings.problem, err)
	}
	m := k.stored()
	if m.Annotations[UIDAnnotation] != "self" || m.Annotations[infrav1.OwnerAnnotation] != "alice" || m.Annotations[AttemptAnnotation] != simtest.Start.Format(time.RFC3339Nano) {
		t.Errorf("it wrote down %v", m.Annotations)
	}
	if got := k.storedCluster().Annotations[infrav1.OwnerAnnotation]; got != "alice" {
		t.Errorf("the cluster knows %q", got)
	}
	for name, seal := range map[string]func(*rack){"MaasMachine": unwritable[*infrav1.MaasMachine], "MaasCluster": unwritable[*infrav1.MaasCluster]} {
		k := seeker(t, "alice", sibling("self"), simtest.Machine{ID: "ready1"})
		seal(k)
		if _, err := k.allocate(t.Context(), k.scope, placement.Request{}, ""); !errors.Is(err, errUnwritten) || k.asked("machines.allocate") > 0 {
			t.Errorf("where the %s can't be written, MAAS is asked: %v", name, err)
		}
	}
	k = seeker(t, "alice", sibling("self"), simtest.Machine{ID: "ready1"})
	writable[*infrav1.MaasMachine](k, 1)
	if _, err := k.allocate(t.Context(), k.scope, placement.Request{}, ""); !errors.Is(err, errUnwritten) {
		t.Errorf("what it got is not written down, and told as done: %v", err)
	}
	k = seeker(t, "alice", sibling("self"), simtest.Machine{ID: "ready1"})
	simtest.Refuse(t, k.site.Simulator, "boot-resources.read", "", http.StatusServiceUnavailable, "busy")
	if missing, err := k.checkImage(t.Context(), k.scope); missing != "" || err == nil {
		t.Errorf("a MAAS that does not answer lacks the image: %q, %v", missing, err)
	}
	simtest.Refuse(t, k.site.Simulator, "tags.read", "", http.StatusServiceUnavailable, "busy")
	result, err := k.allocate(t.Context(), k.scope, placement.Request{}, "")
	k.expectReason(result, err, ReasonUnavailable, 15*time.Second)
}

// TestAllocated checks that the allocated machine is recorded, reported, and not picked again. A virtual machine that
// was not requested is reported.
func TestAllocated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		host   bool
		picked string
		events []string
	}{
		"MAAS picks the machine":                   {events: []string{ReasonAllocated}},
		"the request names the machine":            {picked: "aaaaa1", events: []string{ReasonAllocated}},
		"MAAS picks a machine on a VM host":        {host: true, events: []string{"VirtualMachineAllocated", ReasonAllocated}},
		"the request names a machine on a VM host": {host: true, picked: "aaaaa1", events: []string{ReasonAllocated}},
		"the request names the smallest machine":   {picked: "aaaaa1", events: []string{ReasonAllocated}},
	} {
		t.Run("When "+name+", the machine should be recorded and reported", func(t *testing.T) {
			t.Parallel()
			k := seekerOf(t, "alice", sibling("self", attempted(time.Hour)), simtest.WithVMHost)
			if tc.host {
				k.site.Change("aaaaa1", func(m *inventory.Machine) { host := 7; m.PodID = &host })
			}
			k.spread.chosen["ns"] = map[types.UID]string{"self": "north"}
			result, err := k.allocate(t.Context(), k.scope, placement.Request{Zones: []string{"default"}}, tc.picked)
			k.expectReason(result, err, "", 0)
			m := k.stored()
			if deref(m.Spec.SystemID) != "aaaaa1" || deref(m.Spec.ProviderID) != "maas:///default/aaaaa1" || m.Annotations[AttemptAnnotation] != "" {
				t.Errorf("it wrote down %v, %v", m.Spec, m.Annotations)
			}
			if k.observed == nil || k.observed.SystemID != "aaaaa1" || !k.proven || k.spread.chosen["ns"]["self"] != "default" {
				t.Errorf("the pass knows %+v, as its own: %t, in %v", k.observed, k.proven, k.spread.chosen)
			}
			if got := k.identity.Inventory.Claim([]maas.Machine{*k.observed}); got != "" {
				t.Errorf("%s may be picked again", got)
			}
			k.expectEvents(tc.events...)
			page, err := k.identity.Client.ListEvents(t.Context(), maas.EventFilter{SystemIDs: []string{"aaaaa1"}, Level: "DEBUG"})
			found := false
			for _, e := range page.Events {
				made, ok := maas.AllocationOf(e.Description)
				found = found || ok && made == maas.Allocation{UID: "self", ClusterUID: "cluster"}
			}
			if err != nil || !found {
				t.Errorf("MAAS's log does not tell whose it is: %+v, %v", page.Events, err)
			}
		})
	}
}

// TestRefuse checks that a machine that does not match is released, and is set aside for a while.
func TestRefuse(t *testing.T) {
	t.Parallel()
	elsewhere := placement.Request{Subnet: &maas.Subnet{ID: 9, CIDR: "10.9.0.0/24"}}
	for name, tc := range map[string]struct {
		request placement.Request
		set     func(*rack)
		reason  string
		again   time.Duration
		is      status.Status
		events  []string
	}{
		"it is not in the subnet":    {elsewhere, nil, ReasonNoCapacity, 10 * time.Second, status.Releasing, []string{"MachineReleasing", "MachineDoesNotFit"}},
		"a sibling still runs on it": {placement.Request{}, func(k *rack) { k.scope.occupied = map[string]bool{"ready1": true} }, ReasonNoCapacity, 10 * time.Second, status.Releasing, []string{"MachineReleasing", "MachineDoesNotFit"}},
		"MAAS rejects the release": {elsewhere, func(k *rack) {
			simtest.Refuse(k.t, k.site.Simulator, "machine.release", "", http.StatusServiceUnavailable, "busy")
		}, ReasonUnavailable, 15 * time.Second, status.Allocated, nil},
	} {
		t.Run("When "+name+", the machine should be released and set aside", func(t *testing.T) {
			t.Parallel()
			k := seeker(t, "alice", sibling("self"), simtest.Machine{ID: "ready1"})
			maybe(tc.set, k)
			result, err := k.allocate(t.Context(), k.scope, tc.request, "")
			k.expectReason(result, err, tc.reason, tc.again)
			back := tc.is == status.Releasing
			if got := k.site.Has("ready1").Status; (got == status.Allocated) == back || k.stored().Spec.SystemID != nil || (k.stored().Annotations[AttemptAnnotation] == "") != back {
				t.Errorf("it is %s, and the MaasMachine %+v, %v", got, k.stored().Spec, k.stored().Annotations)
			}
			k.expectEvents(tc.events...)
			k.site.Clock.Step(4*time.Minute - 1)
			if !k.identity.SetAside.Has("ready1") {
				t.Error("it may be picked again too soon")
			}
			k.site.Clock.Step(1)
			if k.identity.SetAside.Has("ready1") {
				t.Error("it may not be picked again")
			}
		})
	}
	k := seeker(t, "alice", sibling("self", attempted(0)), allocated("ready1", "self", status.Allocated)).look("ready1")
	unwritable[*infrav1.MaasMachine](k)
	if _, err := k.refuse(t.Context(), k.scope, k.observed, []string{"words"}); !errors.Is(err, errUnwritten) {
		t.Errorf("it is told as done: %v", err)
	}
}

// TestNotAllocated checks that the attempt stays recorded while the outcome of the call is unknown, and is removed
// after a definite answer.
func TestNotAllocated(t *testing.T) {
	t.Parallel()
	none, bad := &maas.Error{StatusCode: http.StatusConflict, Message: "no machine"}, &maas.Error{StatusCode: http.StatusForbidden, Message: "no"}
	for name, tc := range map[string]struct {
		cause   error
		ends    bool
		virtual bool
		reason  string
		stays   bool
	}{
		"no machine matches":                                  {cause: none, reason: ReasonNoCapacity},
		"MAAS does not have the virtual machine":              {cause: none, virtual: true, reason: ReasonError},
		"the user lacks the permission":                       {cause: bad, reason: ReasonForbidden},
		"the call got no answer":                              {cause: &maas.UnreachableError{Sent: true, Err: errors.New("cut off")}, reason: ReasonUnreachable, stays: true},
		"the request was not sent":                            {cause: &maas.UnreachableError{Err: errors.New("no route")}, reason: ReasonUnreachable},
		"the context is cancelled":                            {cause: bad, ends: true, stays: true},
		"the context is cancelled and the call got no answer": {cause: &maas.UnreachableError{Sent: true, Err: context.Canceled}, ends: true, stays: true},
	} {
		t.Run("When "+name+", it should report the reason, and keep an attempt with an unknown outcome", func(t *testing.T) {
			t.Parallel()
			self := sibling("self", attempted(0))
			if tc.virtual {
				self.Spec.ProvisioningMode = infrav1.ProvisioningModeLXD
			}
			k := seeker(t, "alice", self)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.ends {
				cancel()
			}
			_, err := k.notAllocated(ctx, k.scope, placement.Request{}, tc.cause)
			if k.reason() != tc.reason || err == nil {
				t.Errorf("it is %+v: %v", k.findings.problem, err)
			}
			if got := k.stored().Annotations[AttemptAnnotation]; (got != "") != tc.stays {
				t.Errorf("the attempt is %q", got)
			}
			if tc.reason == ReasonNoCapacity && !strings.Contains(k.findings.problem.Message, "Ready") {
				t.Errorf("it does not say which machines there are: %s", k.findings.problem.Message)
			}
		})
	}
	k := seeker(t, "alice", sibling("self", attempted(0)))
	unwritable[*infrav1.MaasMachine](k)
	if _, err := k.notAllocated(t.Context(), k.scope, placement.Request{}, none); !errors.Is(err, errUnwritten) {
		t.Errorf("it is told as done: %v", err)
	}
}

// TestAskZones checks that one call requests a machine in the allowed zone, or in any zone if no zone is given.
func TestAskZones(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		zones []string
		want  string
	}{
		"one zone is allowed":     {[]string{"south"}, "dear01"},
		"every zone is allowed":   {nil, "cheap1"},
		"the zone has no machine": {[]string{"west"}, ""},
	} {
		k := seeker(t, "alice", sibling("self"), simtest.Machine{ID: "cheap1", Zone: "north", CPU: 1}, simtest.Machine{ID: "dear01", Zone: "south", CPU: 8})
		got, err := k.ask(t.Context(), placement.Request{Zones: tc.zones}, nil, "")
		if (err == nil) != (tc.want != "") || err == nil && (got == nil || got.SystemID != tc.want) {
			t.Errorf("when %s, it is %+v, %v", name, got, err)
		}
		if n := k.asked("machines.allocate"); n != 1 {
			t.Errorf("when %s, MAAS is asked %d times", name, n)
		}
	}
}
