// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/guest"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// quiet returns a reconciler without an API server, whose clock is at noon.
func quiet() (*Reconciler, *clocktesting.FakePassiveClock, *events.FakeRecorder) {
	clock, recorder := clocktesting.NewFakePassiveClock(noon), events.NewFakeRecorder(10)
	r := &Reconciler{Clock: clock, Recorder: recorder}
	r.Default()
	return r, clock, recorder
}

// pass simulates one reconcile: change sets the findings of the phases, and m has the status of earlier reconciles.
func pass(r *Reconciler, m *infrav1.MaasMachine, change func(*scope)) {
	s := &scope{machine: m}
	if since := m.Status.StateSince; s.systemID() != "" && since != nil {
		s.seen = sighting{state: deref(m.Status.MachineState), since: since.Time}
	}
	change(s)
	before := m.Status.DeepCopy()
	r.computeStatus(s)
	r.tell(s, before)
}

// holding returns a MaasMachine that has a machine.
func holding() *infrav1.MaasMachine {
	return &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "uid", CreationTimestamp: metav1.NewTime(noon)},
		Spec: infrav1.MaasMachineSpec{SystemID: ptr.To("wq4h8c"), ProviderID: ptr.To("maas:///az1/wq4h8c")}}
}

func deployed() *maas.Machine {
	return &maas.Machine{SystemID: "wq4h8c", Hostname: "mole", Status: maas.StatusDeployed, StatusName: "Deployed", PowerState: maas.PowerOn, Zone: maas.Zone{Name: "az1"}}
}

func runs(s *scope) {
	s.user, s.observed = "me", deployed()
	s.findings.ready, s.findings.outcome = true, lifecycle.Outcome{Action: lifecycle.Running, Reason: lifecycle.ReasonDeployed, Message: "it runs"}
}

// conditionsOf returns the existing conditions of these types, in the given order, as "Ready False NoCapacity".
func conditionsOf(m *infrav1.MaasMachine, kinds ...string) []string {
	var all []string
	for _, kind := range kinds {
		if c := meta.FindStatusCondition(m.Status.Conditions, kind); c != nil {
			all = append(all, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
		}
	}
	return all
}

// TestReadySumsUp checks that Ready reports the first step that is not done, and why.
func TestReadySumsUp(t *testing.T) {
	t.Parallel()
	problem := func(s *scope) { s.user, s.findings.problem = "me", &Problem{ReasonNoCapacity, "none"} }
	outcome := func(o lifecycle.Outcome) func(*scope) {
		return func(s *scope) { s.user, s.observed, s.findings.outcome = "me", deployed(), o }
	}
	for name, tc := range map[string]struct {
		held  bool
		found func(*scope)
		want  []string
	}{
		"When nothing is known yet, it should report that a machine is being allocated": {false, func(*scope) {}, []string{"MachineAllocated False Allocating", "MachineDeployed False Allocating", "Ready False Allocating"}},
		"When no machine is available, it should report the reason":                     {false, problem, []string{"MachineAllocated False NoCapacity", "MachineDeployed False Allocating", "Ready False NoCapacity"}},
		"When the machine runs, it should be Ready":                                     {true, runs, []string{"MachineAllocated True MachineAllocated", "MachineDeployed True MachineDeployed", "Ready True Ready"}},
		"When the machine can't be deployed, it should report the reason":               {true, problem, []string{"MachineAllocated True MachineAllocated", "MachineDeployed False NoCapacity", "Ready False NoCapacity"}},
		"When the machine is being deployed, it should report that":                     {true, outcome(lifecycle.Outcome{Action: lifecycle.Wait, Reason: lifecycle.ReasonDeploying}), []string{"MachineAllocated True MachineAllocated", "MachineDeployed False MachineDeploying", "Ready False MachineDeploying"}},
		"When the state of the machine is unknown, MachineDeployed should be Unknown":   {true, outcome(lifecycle.Outcome{Action: lifecycle.Wait, Reason: lifecycle.ReasonUndefined}), []string{"MachineAllocated True MachineAllocated", "MachineDeployed Unknown MachineStateUndefined", "Ready Unknown MachineStateUndefined"}},
		"When MAAS does not have the machine, MachineDeployed should be Unknown":        {true, outcome(lifecycle.Outcome{Action: lifecycle.Lost, Reason: lifecycle.ReasonNotFound}), []string{"MachineAllocated True MachineAllocated", "MachineDeployed Unknown MachineNotFound", "Ready Unknown MachineNotFound"}},
		"When the machine was marked as broken, MachineDeployed should be False":        {true, outcome(lifecycle.Outcome{Action: lifecycle.Failed, Reason: lifecycle.ReasonBroken}), []string{"MachineAllocated True MachineAllocated", "MachineDeployed False MachineBroken", "Ready False MachineBroken"}},
		"When the machine was not read, MachineAllocated should still be True":          {true, func(*scope) {}, []string{"MachineAllocated True MachineAllocated", "MachineDeployed False Allocating", "Ready False Allocating"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, _ := quiet()
			m := holding()
			if !tc.held {
				m.Spec = infrav1.MaasMachineSpec{}
			}
			pass(r, m, tc.found)
			if diff := cmp.Diff(tc.want, conditionsOf(m, ConditionAllocated, ConditionDeployed, ConditionReady)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if wants := tc.want[2] == "Ready True Ready"; m.Status.Ready != wants || deref(m.Status.Initialization.Provisioned) != wants {
				t.Errorf("ready %t, provisioned %v", m.Status.Ready, m.Status.Initialization.Provisioned)
			}
		})
	}
}

// TestMAASAwayLeavesWhatRuns checks that an unreachable MAAS changes no condition of a running machine, except that
// of the credentials.
func TestMAASAwayLeavesWhatRuns(t *testing.T) {
	t.Parallel()
	r, clock, recorder := quiet()
	m := holding()
	pass(r, m, runs)
	before := m.Status.DeepCopy()
	clock.SetTime(noon.Add(time.Hour))
	pass(r, m, func(s *scope) { s.findings.problem = &Problem{ReasonUnauthorized, "put a valid key"} })
	if diff := cmp.Diff([]string{"MAASCredentialsUsable False MAASUnauthorized", "MachineDeployed True MachineDeployed", "Ready True Ready"}, conditionsOf(m, ConditionCredentials, ConditionDeployed, ConditionReady)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	after := m.Status.DeepCopy()
	before.Conditions, after.Conditions = nil, nil
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what is known of the machine changed (-before +after):\n%s", diff)
	}
	if n := len(recorder.Events); n != 1 {
		t.Errorf("%d events, and one should tell that it runs", n)
	}
	// A machine that was never deployed differs: without MAAS, it is not Ready.
	m = holding()
	pass(r, m, func(s *scope) { s.findings.problem = &Problem{ReasonUnreachable, "down"} })
	if diff := cmp.Diff([]string{"Ready False MAASUnreachable"}, conditionsOf(m, ConditionCredentials, ConditionReady)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestStateSince checks that the time that a machine is in a state decides when it fails. Neither a restart nor an
// unreachable MAAS may reset it.
func TestStateSince(t *testing.T) {
	t.Parallel()
	r, clock, _ := quiet()
	m := holding()
	is := func(name string) func(*scope) {
		return func(s *scope) {
			s.observed = deployed()
			s.observed.Status, s.observed.StatusName = maas.StatusDeploying, name
			s.findings.outcome = lifecycle.Outcome{Action: lifecycle.Wait, Reason: lifecycle.ReasonDeploying}
		}
	}
	away := func(s *scope) { s.findings.problem = &Problem{ReasonUnreachable, "down"} }
	for i, step := range []struct {
		what string
		do   func(*scope)
		want time.Duration
	}{
		{"it is seen first", is("Deploying"), 0}, {"it is seen again", is("Deploying"), 0}, {"MAAS is away", away, 0}, {"MAAS is back", is("Deploying"), 0},
		{"it changes", runs, 4 * time.Minute}, {"it stays", runs, 4 * time.Minute}, {"it changes back", is("Deploying"), 6 * time.Minute},
	} {
		clock.SetTime(noon.Add(time.Duration(i) * time.Minute))
		pass(r, m, step.do)
		if got := m.Status.StateSince.Sub(noon); got != step.want {
			t.Errorf("when %s, it is in its state since %s, and not %s", step.what, got, step.want)
		}
	}
	// After a loss the time starts again: the next machine has the full timeout.
	m.Spec.SystemID, m.Spec.ProviderID = nil, nil
	clock.SetTime(noon.Add(time.Hour))
	pass(r, m, func(s *scope) { s.findings.problem = &Problem{ReasonNoCapacity, "none"} })
	if m.Status.MachineState != nil || m.Status.StateSince.Sub(noon) != time.Hour {
		t.Errorf("without a machine the state is %v since %s", m.Status.MachineState, m.Status.StateSince)
	}
	if s := m.Status; s.Hostname != nil || s.Zone != "" || s.FailureDomain != nil || s.MachinePowered || s.Addresses != nil {
		t.Errorf("it still tells of the machine that it had: %+v", s)
	}
}

// TestFailureFields checks that only a problem that needs a replacement is terminal for Cluster API, and it is
// cleared if it was wrong.
func TestFailureFields(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	m := holding()
	fails := func(action lifecycle.Action) func(*scope) {
		return func(s *scope) {
			s.observed, s.findings.outcome = deployed(), lifecycle.Outcome{Action: action, Reason: lifecycle.ReasonBroken, Message: "it is broken"}
		}
	}
	expect := func(what, want string) {
		t.Helper()
		if got := deref(m.Status.FailureReason); got != want {
			t.Errorf("%s: the reason is %q", what, got)
		}
		if (deref(m.Status.FailureMessage) == "it is broken") != (want != "") {
			t.Errorf("%s: the message is %q", what, deref(m.Status.FailureMessage))
		}
	}
	pass(r, m, fails(lifecycle.Wait))
	expect("while it is waited for", "")
	pass(r, m, fails(lifecycle.Failed))
	expect("before it ever ran", "CreateError")
	pass(r, m, func(s *scope) { s.findings.problem = &Problem{ReasonUnreachable, "down"} })
	expect("while MAAS is away", "CreateError")
	pass(r, m, runs)
	expect("when it runs after all", "")
	pass(r, m, fails(lifecycle.Lost))
	expect("after it ran", "UpdateError")
	if m.Status.Ready {
		t.Error("what was lost is ready")
	}
}

// TestEventsOnChange checks that an event is sent for a new reason, and not repeated while the reason stays.
func TestEventsOnChange(t *testing.T) {
	t.Parallel()
	r, _, recorder := quiet()
	m := holding()
	m.Spec = infrav1.MaasMachineSpec{}
	stuck := func(reason, message string) func(*scope) {
		return func(s *scope) { s.findings.problem = &Problem{reason, message} }
	}
	for _, step := range []struct {
		found func(*scope)
		want  string
	}{
		{stuck(ReasonWaitingForBootstrapData, "wait"), ""},
		{stuck(ReasonNoCapacity, "none of 3"), "Warning NoCapacity none of 3"},
		{stuck(ReasonNoCapacity, "none of 4"), ""},
		{stuck(ReasonAllocationTimedOut, "too long"), "Warning AllocationTimedOut too long"},
		{stuck(ReasonNoCapacity, "none of 5"), "Warning NoCapacity none of 5"},
		{func(s *scope) {}, ""},
		{func(s *scope) { s.machine.Spec = holding().Spec; runs(s) }, "Normal MachineDeployed it runs"},
		{runs, ""},
	} {
		pass(r, m, step.found)
		got := ""
		if len(recorder.Events) > 0 {
			got = <-recorder.Events
		}
		if got != step.want {
			t.Errorf("the event is %q, and not %q", got, step.want)
		}
	}
}

// TestDeletingTellsWhy checks that a deleted MaasMachine is not ready, and reports what it waits for. A problem takes
// precedence over the state of the machine.
func TestDeletingTellsWhy(t *testing.T) {
	t.Parallel()
	stuck := lifecycle.Outcome{Action: lifecycle.Stuck, Reason: lifecycle.ReasonReleaseFailed, Message: "the BMC is dead"}
	for name, tc := range map[string]struct {
		found findings
		want  string
	}{
		"nothing was found":     {findings{}, lifecycle.ReasonReleasing},
		"the release failed":    {findings{outcome: stuck}, lifecycle.ReasonReleaseFailed},
		"MAAS can't be reached": {findings{outcome: stuck, problem: &Problem{ReasonUnreachable, "down"}}, ReasonUnreachable},
	} {
		r, _, _ := quiet()
		m := holding()
		pass(r, m, runs)
		m.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		pass(r, m, func(s *scope) { s.user, s.findings = "me", tc.found })
		want := []string{"Deleting True " + tc.want, "Ready False " + tc.want, "MachineDeployed True MachineDeployed"}
		if diff := cmp.Diff(want, conditionsOf(m, ConditionDeleting, ConditionReady, ConditionDeployed)); diff != "" {
			t.Errorf("when %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNodeInTime checks that the timeout for a Node is the sum of the boot and join timeouts, to the second, and
// starts at the deployment.
func TestNodeInTime(t *testing.T) {
	t.Parallel()
	limit := infrav1.DefaultBootTimeout + infrav1.DefaultJoinTimeout
	for name, tc := range map[string]struct {
		err    error
		after  time.Duration
		change func(*infrav1.MaasMachine)
		want   string
	}{
		"the Node exists":                     {nil, 100 * limit, nil, ReasonNodeFound},
		"the timeout is not exceeded":         {guest.ErrNoNode, limit, nil, ReasonWaitingForNode},
		"the timeout is exceeded":             {fmt.Errorf("looking: %w", guest.ErrNoNode), limit + 1, nil, ReasonNodeTimedOut},
		"the state could not be read":         {errors.New("down"), limit + 1, nil, ReasonNodeFailed},
		"the spec allows more time to boot":   {guest.ErrNoNode, limit + 1, func(m *infrav1.MaasMachine) { m.Spec.Timeouts.Boot = &metav1.Duration{Duration: time.Hour} }, ReasonWaitingForNode},
		"the spec allows more time to join":   {guest.ErrNoNode, limit + 1, func(m *infrav1.MaasMachine) { m.Spec.Timeouts.Join = &metav1.Duration{Duration: time.Hour} }, ReasonWaitingForNode},
		"the spec allows less time":           {guest.ErrNoNode, limit, func(m *infrav1.MaasMachine) { m.Spec.Timeouts.Join = &metav1.Duration{Duration: time.Minute} }, ReasonNodeTimedOut},
		"a timeout of zero means the default": {guest.ErrNoNode, limit, func(m *infrav1.MaasMachine) { m.Spec.Timeouts.Join = &metav1.Duration{} }, ReasonWaitingForNode},
		"it is being deployed again": {guest.ErrNoNode, limit + 1, func(m *infrav1.MaasMachine) {
			meta.FindStatusCondition(m.Status.Conditions, ConditionDeployed).Status = metav1.ConditionFalse
		}, ReasonWaitingForNode},
	} {
		t.Run("When "+name+", the Node condition should report it", func(t *testing.T) {
			t.Parallel()
			r, clock, _ := quiet()
			m := holding()
			pass(r, m, runs)
			maybe(tc.change, m)
			clock.SetTime(noon.Add(tc.after))
			c := r.nodeCondition(&scope{machine: m, observed: &maas.Machine{Hostname: "MOLE"}}, tc.err)
			if c.Reason != tc.want || (c.Status == metav1.ConditionTrue) != (tc.err == nil) {
				t.Errorf("it is %s %s: %s", c.Status, c.Reason, c.Message)
			}
			if errors.Is(tc.err, guest.ErrNoNode) && !strings.Contains(c.Message, "Node named mole ") {
				t.Errorf("a person looks for the name as a Node has it: %s", c.Message)
			}
		})
	}
}

// TestExcluded checks that recently failed machines are listed once each, at most as many as the API accepts. A
// longer list would prevent writing the status.
func TestExcluded(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	failed := func(id string, ago time.Duration) failure { return failure{SystemID: id, At: noon.Add(-ago)} }
	got := r.excluded([]failure{failed("old", time.Hour), failed("a", time.Hour-1), failed("b", 0), failed("a", 0)})
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var many []failure
	for i := range 25 {
		many = append(many, failed(fmt.Sprint(i), 0))
	}
	if n := len(r.excluded(many)); n != 20 {
		t.Errorf("%d are told", n)
	}
}

// TestAddressesAreBounded checks that the status can be written for a machine with hundreds of addresses. Names come
// first.
func TestAddressesAreBounded(t *testing.T) {
	t.Parallel()
	m := &maas.Machine{Hostname: "mole", FQDN: "mole"}
	for i := range 200 {
		m.IPAddresses = append(m.IPAddresses, fmt.Sprintf("10.0.0.%d", i), "10.0.0.0")
	}
	got := addresses(m)
	if len(got) != 128 || got[0].Address != "mole" || got[127] != (infrav1.MachineAddress{Type: infrav1.MachineInternalIP, Address: "10.0.0.62"}) {
		t.Errorf("%d addresses, from %v to %v", len(got), got[0], got[len(got)-1])
	}
	seen := map[infrav1.MachineAddress]bool{}
	for _, a := range got {
		if seen[a] {
			t.Errorf("%v is told twice, which the API refuses", a)
		}
		seen[a] = true
	}
}

// TestNote checks that the text of an event is not longer than the API server accepts, and ends with a complete
// character.
func TestNote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("a", 999) + "ü" + strings.Repeat("b", 100), strings.Repeat("ü", 2000), "a" + strings.Repeat("ü", 2000)} {
		if got := note(text); len(got) > 1024 || !utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
			t.Errorf("%d bytes, valid: %t, end in %q", len(got), utf8.ValidString(got), got[len(got)-8:])
		}
	}
	if got := note(strings.Repeat("a", 1000)); strings.HasSuffix(got, ".") {
		t.Error("what fits is cut")
	}
}

// TestNoticedLoss checks that a MaasMachine that noticed the loss of its machine does not reclaim it, even if the
// machine seems to be its own again.
func TestNoticedLoss(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{
		lifecycle.ReasonTerminated: true, lifecycle.ReasonNotFound: true, lifecycle.ReasonTakenOver: true, lifecycle.ReasonBroken: true,
		lifecycle.ReasonDeployed: false, lifecycle.ReasonPoweredOff: false, lifecycle.ReasonDeployFailed: false, ReasonUnreachable: false,
	} {
		m := holding()
		m.Status.Conditions = []metav1.Condition{condition.False(ConditionReady, lifecycle.ReasonTakenOver, ""), condition.False(ConditionDeployed, reason, "")}
		if got := noticedLoss(m); got != want {
			t.Errorf("%s tells of a loss: %t", reason, got)
		}
	}
	if noticedLoss(holding()) {
		t.Error("a loss without a condition")
	}
}
