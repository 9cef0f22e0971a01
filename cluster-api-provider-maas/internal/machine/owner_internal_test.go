// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// rack is a simulated MAAS, and a reconciler that manages one MaasMachine as one MAAS user.
type rack struct {
	*Reconciler
	*scope
	site *simtest.Site
	t    *testing.T
}

func newRack(t *testing.T, user string, self *infrav1.MaasMachine, machines ...simtest.Machine) *rack {
	t.Helper()
	return rackOf(t, user, self, simtest.Seed(machines...))
}

func rackOf(t *testing.T, user string, self *infrav1.MaasMachine, seed string) *rack {
	t.Helper()
	r := among(t, self)
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(self), self); err != nil {
		t.Fatal(err)
	}
	site := simtest.New(t, seed)
	id, err := identity.NewResolver(identity.Options{Clock: site.Clock, Template: maas.Config{Clock: site.Clock, Retry: maas.RetryPolicy{Attempts: -1}},
		Environment: map[string][]byte{maas.SecretKeyEndpoint: []byte(simtest.Listen(t, site.Simulator)), maas.SecretKeyAPIKey: []byte(site.Key(user))}}).For(t.Context(), client.ObjectKey{})
	if err != nil {
		t.Fatal(err)
	}
	infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	return &rack{r, &scope{machine: self, infra: infra, identity: id, user: user}, site, t}
}

// allocated returns a machine that is allocated to alice, with the key of a MaasMachine.
func allocated(id, uid string, is status.Status) simtest.Machine {
	return simtest.Machine{ID: id, Hostname: "host-" + id, Status: is, Owner: "alice", AgentName: maas.AllocationKey(uid)}
}

// asked returns the number of calls of an operation since the last call of asked.
func (k *rack) asked(operation string) int {
	defer k.site.ResetRequests()
	return k.site.Load.Report().Of(operation).Calls
}

// TestOurs checks that a machine is released only if it certainly belongs to this MaasMachine.
func TestOurs(t *testing.T) {
	t.Parallel()
	const uid = "0f3c61f2-3f43-4f0b-8c55-1f0a5a6d9f10"
	keyed := func(m *infrav1.MaasMachine) { annotate(m, UIDAnnotation, uid) }
	lost := func(m *infrav1.MaasMachine) {
		m.Status.Conditions = []metav1.Condition{condition.False(ConditionDeployed, lifecycle.ReasonTakenOver, "")}
	}
	mark := func(uid string) map[string]string { return map[string]string{maas.AnnotationMachineUID: uid} }
	for name, tc := range map[string]struct {
		self    func(*infrav1.MaasMachine)
		machine maas.Machine
		want    bool
		asks    int
	}{
		"MAAS lists it by the key":                                      {keyed, maas.Machine{SystemID: "ours01", Owner: "alice"}, true, 1},
		"it has our annotation and the key of another MaasMachine":      {keyed, maas.Machine{SystemID: "theirs", Owner: "alice", Annotations: mark(uid)}, false, 1},
		"it has the annotation of another MaasMachine and our key":      {keyed, maas.Machine{SystemID: "ours01", Owner: "alice", Annotations: mark("x")}, true, 1},
		"it has no owner, and our annotation":                           {keyed, maas.Machine{SystemID: "theirs", Annotations: mark(uid)}, true, 0},
		"it has no owner, and the annotation of another MaasMachine":    {keyed, maas.Machine{SystemID: "ours01", Annotations: mark("x")}, false, 0},
		"it has no owner and no annotation":                             {keyed, maas.Machine{SystemID: "ours01"}, false, 0},
		"another provider allocated it, without annotations":            {nil, maas.Machine{SystemID: "theirs", Owner: "alice"}, true, 0},
		"another provider allocated it, and another MaasMachine has it": {nil, maas.Machine{SystemID: "theirs", Owner: "alice", Annotations: mark("x")}, false, 0},
		"another provider allocated it, and its loss was noticed":       {lost, maas.Machine{SystemID: "theirs", Owner: "alice"}, false, 0},
		"it is the virtual machine that is being composed":              {keyed, maas.Machine{SystemID: "v", Hostname: "vm-" + uid, Owner: "admin", Status: maas.StatusCommissioning}, true, 0},
		"an administrator tests the virtual machine":                    {keyed, maas.Machine{SystemID: "v", Hostname: "vm-" + uid, Owner: "admin", Status: maas.StatusTesting}, true, 0},
		"the virtual machine failed its tests":                          {keyed, maas.Machine{SystemID: "v", Hostname: "vm-" + uid, Owner: "admin", Status: maas.StatusFailedTesting}, true, 0},
		"the virtual machine was marked as broken":                      {keyed, maas.Machine{SystemID: "v", Hostname: "vm-" + uid, Owner: "admin", Status: maas.StatusBroken}, true, 0},
		"another user allocated the virtual machine":                    {keyed, maas.Machine{SystemID: "v", Hostname: "vm-" + uid, Owner: "alice", Status: maas.StatusDeployed}, false, 1},
	} {
		t.Run("When "+name+", it should be ours only if MAAS proves it", func(t *testing.T) {
			t.Parallel()
			self := sibling("self")
			maybe(tc.self, self)
			k := newRack(t, "alice", self, allocated("ours01", uid, status.Deployed), allocated("theirs", "other", status.Deployed))
			k.asked("")
			got, err := k.ours(t.Context(), k.scope, &tc.machine)
			if err != nil || got != tc.want {
				t.Errorf("it is ours: %t, %v", got, err)
			}
			if n := k.asked("machines.read"); n != tc.asks {
				t.Errorf("MAAS was asked %d times", n)
			}
			k.proven = true
			if got, err := k.ours(t.Context(), k.scope, &tc.machine); !got || err != nil {
				t.Errorf("what this pass saw with our key is ours no more: %v", err)
			}
		})
	}
	k := newRack(t, "alice", sibling("self", keyed), allocated("ours01", uid, status.Deployed))
	simtest.Refuse(t, k.site.Simulator, "machines.read", "", http.StatusServiceUnavailable, "busy")
	if got, err := k.ours(t.Context(), k.scope, &maas.Machine{SystemID: "ours01", Owner: "alice"}); got || err == nil {
		t.Errorf("a MAAS that does not answer says that it is ours: %t, %v", got, err)
	}
}

// TestHolding checks that machines with the key are not adopted if they are released by another component, or by
// MAAS.
func TestHolding(t *testing.T) {
	t.Parallel()
	self := sibling("self")
	if err := setFailures(self, []failure{{SystemID: "failed"}, {SystemID: "before", Released: true}}); err != nil {
		t.Fatal(err)
	}
	k := newRack(t, "alice", self, allocated("failed", "self", status.FailedDeployment), allocated("before", "self", status.Allocated), allocated("handed", "self", status.Deployed),
		allocated("kept01", "self", status.Allocated), allocated("leaves", "self", status.Releasing), allocated("runs01", "self", status.Deployed), allocated("theirs", "selfish", status.Allocated))
	err := errors.Join(handover.Records.Set(k.infra, "handed", handover.Record{UID: "self"}), reservation.Records.Set(k.infra, "kept01", reservation.Record{UID: "self"}),
		// Records of other MaasMachines do not count, even for the same machines.
		handover.Records.Set(k.infra, "runs01", handover.Record{UID: "other"}), reservation.Records.Set(k.infra, "before", reservation.Record{UID: "other"}))
	if err != nil {
		t.Fatal(err)
	}
	held, err := k.holding(t.Context(), k.scope)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range held {
		ids = append(ids, m.SystemID)
	}
	slices.Sort(ids)
	if diff := cmp.Diff([]string{"before", "runs01"}, ids); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAdopt checks that of several allocations with lost answers, the one with the most progress stays. It is
// recorded before the others are released. A process that is interrupted in between, or is too late, has released
// nothing.
func TestAdopt(t *testing.T) {
	t.Parallel()
	seeds := []simtest.Machine{allocated("aaaaa1", "self", status.Allocated), allocated("aaaaa2", "self", status.Deployed), allocated("aaaaa3", "self", status.Allocated)}
	k := newRack(t, "alice", sibling("self", annotated(AttemptAnnotation, "2026-11-22T12:00:00Z")), seeds...)
	refused := errors.New("somebody wrote in between")
	whole := k.Client
	k.Client = interceptor.NewClient(whole.(client.WithWatch), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refused
		}})
	if adopted, err := k.adopt(t.Context(), k.scope); adopted || !errors.Is(err, refused) {
		t.Fatalf("it is taken up without being written down: %t, %v", adopted, err)
	}
	if n := k.asked("machine.release"); n != 0 {
		t.Fatalf("%d machines were given back before that", n)
	}
	k.Client = whole
	k.scope.machine = sibling("self")
	if err := k.Client.Get(t.Context(), client.ObjectKeyFromObject(k.scope.machine), k.scope.machine); err != nil {
		t.Fatal(err)
	}
	accept := simtest.Refuse(t, k.site.Simulator, "machine.release", "aaaaa3", http.StatusServiceUnavailable, "the BMC is dead")
	if adopted, err := k.adopt(t.Context(), k.scope); adopted || !maas.IsUnavailable(err) {
		t.Errorf("it is told as done: %t, %v", adopted, err)
	}
	stored := &infrav1.MaasMachine{}
	if err := k.Client.Get(t.Context(), client.ObjectKeyFromObject(k.scope.machine), stored); err != nil {
		t.Fatal(err)
	}
	if deref(stored.Spec.SystemID) != "aaaaa2" || deref(stored.Spec.ProviderID) == "" || stored.Annotations[UIDAnnotation] != "self" || stored.Annotations[AttemptAnnotation] != "" {
		t.Errorf("it is written down as %v, %v, %v", deref(stored.Spec.SystemID), deref(stored.Spec.ProviderID), stored.Annotations)
	}
	accept()
	// Later reconciles release the surplus machines, but not the adopted one.
	if adopted, err := k.adopt(t.Context(), k.scope); err != nil || !adopted {
		t.Errorf("%t, %v", adopted, err)
	}
	k.site.Settle(3 * time.Minute)
	for id, want := range map[string]status.Status{"aaaaa1": status.Ready, "aaaaa2": status.Deployed, "aaaaa3": status.Ready} {
		if got := k.site.Has(id).Status; got != want {
			t.Errorf("%s is %v", id, got)
		}
	}
}

// TestAsk checks that the zones are tried in order until one has a machine, or a call fails.
func TestAsk(t *testing.T) {
	t.Parallel()
	seeds := []simtest.Machine{{ID: "south1", Zone: "south"}, {ID: "east01", Zone: "east"}, {ID: "north1", Zone: "north", CPU: 1}}
	request := placement.Request{MinCPU: 4, Zones: []string{"north", "south", "east"}}
	t.Run("When the first zone has no machine, it should allocate a machine in the second", func(t *testing.T) {
		t.Parallel()
		k := newRack(t, "alice", sibling("self"), seeds...)
		k.asked("")
		got, err := k.ask(t.Context(), request, nil, "")
		if err != nil || got.SystemID != "south1" || k.asked("machines.allocate") != 2 {
			t.Fatalf("%+v, %v", got, err)
		}
		if m := k.site.Has("south1"); m.AgentName != maas.AllocationKey("self") || m.Owner != "alice" {
			t.Errorf("it carries the key %q", m.AgentName)
		}
	})
	t.Run("When a machine is named, it should allocate that machine, and only once", func(t *testing.T) {
		t.Parallel()
		k := newRack(t, "alice", sibling("self"), seeds...)
		k.asked("")
		got, err := k.ask(t.Context(), request, nil, "east01")
		if err != nil || got.SystemID != "east01" || k.asked("machines.allocate") != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err := k.ask(t.Context(), request, nil, "east01"); !placement.HasNone(err) || k.asked("machines.allocate") != 1 {
			t.Errorf("one that is taken: %+v, %v", got, err)
		}
	})
	t.Run("When no zone has a machine, it should return an error that says so", func(t *testing.T) {
		t.Parallel()
		k := newRack(t, "alice", sibling("self"), seeds...)
		k.asked("")
		got, err := k.ask(t.Context(), placement.Request{MinCPU: 400, Zones: request.Zones}, nil, "")
		if got != nil || !placement.HasNone(err) || k.asked("machines.allocate") != 3 {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("When MAAS fails with an error, it should try no other zone", func(t *testing.T) {
		t.Parallel()
		k := newRack(t, "alice", sibling("self"), seeds...)
		simtest.Fault(t, k.site.Simulator, faults.Rule{Kind: faults.Error, Operation: "machines.allocate", Status: http.StatusInternalServerError, Count: 1})
		got, err := k.ask(t.Context(), request, nil, "")
		if got != nil || !maas.IsUncertain(err) {
			t.Errorf("%+v, %v", got, err)
		}
		for _, m := range k.site.Machines() {
			if m.Owner != "" {
				t.Errorf("%s was allocated, while one may turn up in the first zone", m.SystemID)
			}
		}
	})
}

// TestCredentialsAreTold checks that the credentials condition is false only for problems that other credentials would
// fix.
func TestCredentialsAreTold(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		ReasonCredentialsMissing: "False", ReasonUnauthorized: "False", ReasonAnotherUser: "False", ReasonUnreachable: "True", ReasonNoCapacity: "True", "": "True",
	} {
		s := &scope{machine: holding(), user: "me"}
		if reason != "" {
			s.findings.problem = &Problem{reason, "words"}
		}
		got := s.credentialsConditions()
		if len(got) != 1 || string(got[0].Status) != want || want == "False" && (got[0].Reason != reason || got[0].Message != "words") {
			t.Errorf("%s tells %+v", reason, got)
		}
	}
	if got := (&scope{machine: holding()}).credentialsConditions(); got != nil {
		t.Errorf("where MAAS was not asked, it tells %+v", got)
	}
}

// TestOutstandingIsTold checks that the condition reports pending releases while there are any, and that there are
// none afterwards.
func TestOutstandingIsTold(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	m := holding()
	expect := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, conditionsOf(m, ConditionOutstanding)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	pass(r, m, runs)
	expect("before any failed")
	fail := func(failures ...failure) {
		if err := setFailures(m, failures); err != nil {
			t.Fatal(err)
		}
		pass(r, m, func(s *scope) {
			runs(s)
			for range s.outstanding() {
				s.findings.outstanding = append(s.findings.outstanding, unreleased{Outcome: lifecycle.Outcome{Reason: lifecycle.ReasonReleaseFailed, Message: "dead BMC"}})
			}
		})
	}
	fail(failure{SystemID: "wq4h8c"})
	expect("the machine held is none of them")
	fail(failure{SystemID: "x", At: noon}, failure{SystemID: "y", At: noon, Released: true})
	expect("one is not back", "FailedMachinesReleased False MachineReleaseFailed")
	if m.Status.Attempts != 2 || !slices.Equal(m.Status.ExcludedSystemIDs, []string{"x", "y"}) {
		t.Errorf("%d tries, on %v", m.Status.Attempts, m.Status.ExcludedSystemIDs)
	}
	if !GivesBack(m, "x") || GivesBack(m, "y") || GivesBack(m, "z") {
		t.Error("the sweep would take it for another's, or another's for it")
	}
	fail(failure{SystemID: "x", Released: true})
	expect("it is back", "FailedMachinesReleased True MachineReleased")
}

// TestWhatIsLearnt checks that the status has the data of the machine in MAAS, and keeps it while MAAS is unreachable.
func TestWhatIsLearnt(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	m := holding()
	see := func(s *scope) {
		runs(s)
		s.observed.FQDN, s.observed.IPAddresses = "mole.maas", []string{"10.0.0.7"}
	}
	for _, found := range []func(*scope){see, func(s *scope) { s.findings.problem = &Problem{ReasonUnreachable, "down"} }} {
		pass(r, m, found)
		s := m.Status
		if deref(s.Hostname) != "mole" || s.Zone != "az1" || deref(s.FailureDomain) != "az1" || !s.MachinePowered || deref(s.MachineState) != "Deployed" || len(s.Addresses) != 6 {
			t.Errorf("it tells %+v", s)
		}
	}
	pass(r, m, func(s *scope) {
		s.findings.outcome = lifecycle.Outcome{Action: lifecycle.Lost, Reason: lifecycle.ReasonNotFound}
	})
	if s := m.Status; s.Hostname != nil || s.MachinePowered || s.Addresses != nil || s.MachineState != nil || s.Ready {
		t.Errorf("of a machine that is gone it tells %+v", s)
	}
}
