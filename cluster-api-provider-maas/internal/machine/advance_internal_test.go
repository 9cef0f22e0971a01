// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// holder returns a fixture whose MaasMachine has alice's machine m1, in the given state.
func holder(t *testing.T, is status.Status, change ...func(*infrav1.MaasMachine)) *rack {
	t.Helper()
	self := sibling("self", append([]func(*infrav1.MaasMachine){annotated(UIDAnnotation, "self"), holds("m1")}, change...)...)
	return seeker(t, "alice", self, simtest.Machine{ID: "m1", Hostname: "mole", Status: is, Owner: "alice", AgentName: maas.AllocationKey("self"), Power: "on"}).look("m1")
}

// holds gives the MaasMachine a machine that does not run yet.
func holds(id string) func(*infrav1.MaasMachine) {
	return func(m *infrav1.MaasMachine) { m.Spec.SystemID = &id }
}

// deployCondition sets the only condition. Its transition time is counted back from the start of the simulation.
func deployCondition(c metav1.Condition, ago time.Duration) func(*infrav1.MaasMachine) {
	return func(m *infrav1.MaasMachine) {
		c.LastTransitionTime = metav1.NewTime(simtest.Start.Add(-ago))
		m.Status.Conditions = []metav1.Condition{c}
	}
}

var marksOfSelf = map[string]string{
	maas.AnnotationMachineUID: "self", maas.AnnotationMachine: "owner", maas.AnnotationNamespace: "ns", maas.AnnotationCluster: "demo",
	maas.AnnotationClusterUID: "cluster", maas.AnnotationPool: "pool",
}

// TestMark checks that the ownership annotations of a machine replace older ones, as long as the machine belongs to
// this MaasMachine.
func TestMark(t *testing.T) {
	t.Parallel()
	failed := annotated(FailuresAnnotation, `[{"systemID": "m1"}]`)
	exhausted := deployCondition(condition.False(ConditionDeployed, ReasonAttemptsExhausted, ""), 0)
	for name, tc := range map[string]struct {
		is     status.Status
		change func(*infrav1.MaasMachine)
		set    func(*rack)
		marks  bool
	}{
		"it is allocated":                 {status.Allocated, nil, nil, true},
		"it is being deployed":            {status.Deploying, nil, nil, true},
		"it runs":                         {status.Deployed, running("m1"), nil, true},
		"it failed":                       {status.FailedDeployment, nil, nil, false},
		"it is being tested":              {status.Testing, nil, nil, false},
		"it is being released":            {status.Deployed, failed, nil, false},
		"all attempts are exhausted":      {status.Deployed, exhausted, nil, false},
		"another user has it":             {status.Deployed, running("m1"), func(k *rack) { k.lost = true }, false},
		"it has no owner":                 {status.Deployed, running("m1"), func(k *rack) { k.observed.Owner = "" }, false},
		"MAAS does not show it":           {status.Deployed, running("m1"), func(k *rack) { k.observed = nil }, false},
		"MAAS rejected them a moment ago": {status.Deployed, running("m1"), func(k *rack) { k.refusals.add("m1", Problem{ReasonInvalid, "no"}, k.site.Clock.Now()) }, false},
		"it has an old annotation":        {status.Allocated, nil, func(k *rack) { remark(k, map[string]string{maas.AnnotationMachineUID: "former"}) }, true},
		"one of its annotations is missing": {status.Allocated, nil, func(k *rack) {
			k.infra.UID = "new"
			remark(k, marksOfSelf)
			k.infra.UID = "cluster"
			remark(k, map[string]string{maas.AnnotationPool: ""})
		}, true},
	} {
		t.Run("When "+name+", it should get the annotations only if this MaasMachine owns it", func(t *testing.T) {
			t.Parallel()
			k := holder(t, tc.is, func(m *infrav1.MaasMachine) { maybe(tc.change, m) })
			maybe(tc.set, k)
			_, err := k.mark(t.Context(), k.scope)
			if paused := k.reason() == ReasonInvalid; paused != (err != nil) {
				t.Errorf("it is %+v: %v", k.findings.problem, err)
			}
			if diff := cmp.Diff(marksOfSelf, k.site.Has("m1").Annotations); (diff == "") != tc.marks {
				t.Errorf("-want +got:\n%s", diff)
			}
			if tc.marks && !k.marked(k.observed) {
				t.Error("the pass does not know it")
			}
			k.asked("")
			if _, err := k.mark(t.Context(), k.scope); tc.marks && (err != nil || k.asked("machine.set_workload_annotations") > 0) {
				t.Errorf("it is marked twice: %v", err)
			}
		})
	}
}

func remark(k *rack, marks map[string]string) {
	k.site.Change("m1", func(m *inventory.Machine) {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		for key, value := range marks {
			m.Annotations[key] = value
		}
	})
	k.look("m1")
}

// TestAdvance checks the next action in each state, and the delay until the next reconcile.
func TestAdvance(t *testing.T) {
	t.Parallel()
	exhausted := deployCondition(condition.False(ConditionDeployed, ReasonAttemptsExhausted, "it is kept"), 0)
	off := func(k *rack) { k.site.Change("m1", func(m *inventory.Machine) { m.PowerState = "off" }); k.look("m1") }
	for name, tc := range map[string]struct {
		is     status.Status
		change func(*infrav1.MaasMachine)
		set    func(*rack)
		action lifecycle.Action
		reason string
		again  time.Duration
		then   status.Status
	}{
		"it is allocated":                             {is: status.Allocated, action: lifecycle.Wait, reason: lifecycle.ReasonDeploying, again: 10 * time.Second, then: status.Deploying},
		"it is being deployed":                        {is: status.Deploying, action: lifecycle.Wait, reason: lifecycle.ReasonDeploying, again: 10 * time.Second, then: status.Deploying},
		"it runs":                                     {is: status.Deployed, action: lifecycle.Running, reason: lifecycle.ReasonDeployed, again: 2 * time.Minute, then: status.Deployed},
		"it is off":                                   {is: status.Deployed, set: off, action: lifecycle.PowerOn, reason: lifecycle.ReasonPoweredOff, again: 10 * time.Second, then: status.Deployed},
		"its tests failed":                            {is: status.FailedTesting, change: running("m1"), action: lifecycle.Failed, reason: lifecycle.ReasonTestsFailed, again: 2 * time.Minute, then: status.FailedTesting},
		"another user allocated it":                   {is: status.Deployed, change: running("m1"), set: func(k *rack) { k.lost = true }, action: lifecycle.Lost, reason: lifecycle.ReasonTakenOver, again: 2 * time.Minute, then: status.Deployed},
		"an administrator works on it":                {is: status.Testing, change: running("m1"), action: lifecycle.Wait, reason: lifecycle.ReasonMaintenance, again: 10 * time.Second, then: status.Testing},
		"all attempts are exhausted":                  {is: status.FailedDeployment, change: exhausted, action: lifecycle.Failed, reason: ReasonAttemptsExhausted, again: 2 * time.Minute, then: status.FailedDeployment},
		"all attempts are exhausted, but it runs":     {is: status.Deployed, change: exhausted, action: lifecycle.Running, reason: lifecycle.ReasonDeployed, again: 2 * time.Minute, then: status.Deployed},
		"all attempts are exhausted, and it was lost": {is: status.Deployed, change: exhausted, set: func(k *rack) { k.lost = true }, action: lifecycle.Lost, reason: lifecycle.ReasonTakenOver, again: 2 * time.Minute, then: status.Deployed},
	} {
		t.Run("When "+name+", it should do the next step for that state", func(t *testing.T) {
			t.Parallel()
			k := holder(t, tc.is, func(m *infrav1.MaasMachine) { maybe(tc.change, m) })
			maybe(tc.set, k)
			result, err := k.advance(t.Context(), k.scope)
			k.expectReason(result, err, "", tc.again)
			if got := k.findings.outcome; got.Action != tc.action || got.Reason != tc.reason || k.findings.ready != (tc.action == lifecycle.Running) {
				t.Errorf("it is %+v, ready: %t", got, k.findings.ready)
			}
			if got := k.site.Has("m1").Status; got != tc.then {
				t.Errorf("MAAS has it as %s", got)
			}
		})
	}
}

// TestAdvanceFailed checks that a failed machine is replaced after the failure was recorded, and a machine that is
// being released stays so.
func TestAdvanceFailed(t *testing.T) {
	t.Parallel()
	k := holder(t, status.FailedDeployment)
	result, err := k.advance(t.Context(), k.scope)
	k.expectReason(result, err, "", 10*time.Second)
	if got := failuresOf(k.stored()); len(got) != 1 || got[0].SystemID != "m1" || got[0].Reason != lifecycle.ReasonDeployFailed {
		t.Errorf("it wrote down %+v", got)
	}
	k.site.Settle(5 * time.Minute)
	k.look("m1")
	_, err = k.advance(t.Context(), k.scope)
	if err != nil || k.systemID() != "" || k.stored().Spec.SystemID != nil || k.observed != nil {
		t.Errorf("it still has %q: %v", k.systemID(), err)
	}
}

// TestAdvanceWellAgain checks that a running machine no longer counts as failed; if this cannot be written, an error is
// returned.
func TestAdvanceWellAgain(t *testing.T) {
	t.Parallel()
	k := holder(t, status.Deployed)
	if err := quarantine.Records.Set(k.infra, "m1", quarantine.Record{Failures: 1}); err != nil {
		t.Fatal(err)
	}
	whole := k.Client
	unwritable[*infrav1.MaasCluster](k)
	if _, err := k.advance(t.Context(), k.scope); !errors.Is(err, errUnwritten) {
		t.Errorf("it is told as done: %v", err)
	}
	k.Client = whole
	if err := quarantine.Records.Set(k.infra, "m1", quarantine.Record{Failures: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.advance(t.Context(), k.scope); err != nil || len(quarantine.Records.Of(k.infra)) > 0 {
		t.Errorf("it still counts as one that failed: %v", err)
	}
}

// TestEvaluateVirtual checks that a virtual machine composed for the MaasMachine is deleted with it, and until then
// evaluated like any other machine.
func TestEvaluateVirtual(t *testing.T) {
	t.Parallel()
	vm := &maas.Machine{SystemID: "v1", Hostname: "vm-1", PowerType: "lxd", Status: maas.StatusCommissioning, Owner: "alice"}
	s := &scope{machine: virtual(holds("v1"))}
	s.machine.Annotations = nil
	if got := s.evaluate(lifecycle.Leaving, vm).Action; got != lifecycle.Release {
		t.Errorf("it is to %s, and stays on its host", got)
	}
	if got := s.evaluate(lifecycle.Provisioned, vm).Action; got != lifecycle.Lost {
		t.Errorf("it is to %s while it is held", got)
	}
	s.foreign = true
	if got := s.evaluate(lifecycle.Provisioned, nil); got.Reason != lifecycle.ReasonTakenOver {
		t.Errorf("one that another user has is %s", got.Reason)
	}
	if got := s.evaluate(lifecycle.Provisioned, vm); got.Reason == lifecycle.ReasonTakenOver {
		t.Error("one that can be read is said to be another user's")
	}
	s.foreign = false
	if got := s.evaluate(lifecycle.Provisioned, nil); got.Reason != lifecycle.ReasonNotFound {
		t.Errorf("one that is gone is %s", got.Reason)
	}
}

// TestPowerOn checks that a machine is switched on, but not again before it had time to boot. A failed call is
// reported.
func TestPowerOn(t *testing.T) {
	t.Parallel()
	k := holder(t, status.Deployed)
	k.site.Change("m1", func(m *inventory.Machine) { m.PowerState = "off" })
	k.look("m1")
	for i, tc := range []struct {
		after time.Duration
		calls int
	}{{0, 1}, {5*time.Minute - 1, 0}, {1, 1}} {
		k.site.Clock.Step(tc.after)
		k.asked("")
		result, err := k.powerOn(t.Context(), k.scope)
		k.expectReason(result, err, "", 10*time.Second)
		if n := k.asked("machine.power_on"); n != tc.calls {
			t.Errorf("try %d: MAAS was asked %d times", i, n)
		}
	}
	k.expectEvents(lifecycle.ReasonPoweredOff, lifecycle.ReasonPoweredOff)
	k.site.Pass(time.Minute)
	if got := k.site.Has("m1").PowerState; got != "on" {
		t.Errorf("its power is %s", got)
	}
	for _, operation := range []string{"machine.query_power_state", "machine.power_on"} {
		k = holder(t, status.Deployed)
		k.site.Change("m1", func(m *inventory.Machine) { m.PowerState = "off" })
		simtest.Refuse(t, k.site.Simulator, operation, "", http.StatusServiceUnavailable, "busy")
		result, err := k.powerOn(t.Context(), k.scope)
		k.expectReason(result, err, ReasonUnavailable, 15*time.Second)
		k.expectEvents()
	}
}

// TestPowerOnQueriesFirst checks that a machine is not powered on because of an outdated record that it is off.
func TestPowerOnQueriesFirst(t *testing.T) {
	t.Parallel()
	for _, now := range []string{"on", "unknown", "error"} {
		k := holder(t, status.Deployed)
		k.site.Change("m1", func(m *inventory.Machine) { m.PowerState = "off" })
		k.look("m1")
		k.site.Change("m1", func(m *inventory.Machine) { m.PowerState = now })
		k.asked("")
		result, err := k.powerOn(t.Context(), k.scope)
		k.expectReason(result, err, "", 10*time.Second)
		if k.asked("machine.power_on") > 0 {
			t.Errorf("a machine whose power is %s is powered on", now)
		}
		k.expectEvents()
		if m, err := k.identity.Inventory.Machine(t.Context(), "m1", time.Hour); err != nil || string(m.PowerState) != now {
			t.Errorf("the next reconcile does not know that the power is %s: %+v, %v", now, m, err)
		}
	}
}

// TestPowerOnIsKnown checks that the next reconcile uses the answer of MAAS without another read.
func TestPowerOnIsKnown(t *testing.T) {
	t.Parallel()
	k := holder(t, status.Deployed)
	k.site.Change("m1", func(m *inventory.Machine) { m.PowerState = "off"; m.Hostname = "renamed" })
	if _, err := k.powerOn(t.Context(), k.scope); err != nil {
		t.Fatal(err)
	}
	k.asked("")
	m, err := k.identity.Inventory.Machine(t.Context(), "m1", time.Hour)
	if err != nil || m.Hostname != "renamed" || k.asked("machine.read") > 0 {
		t.Errorf("it is %+v, %v", m, err)
	}
}

// TestNotRunningSince checks that the Deployed condition shows since when a machine does not run.
func TestNotRunningSince(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		condition metav1.Condition
		want      time.Duration
	}{
		"it runs":              {condition.True(ConditionDeployed, "R", ""), 0},
		"it does not run":      {condition.False(ConditionDeployed, "R", ""), time.Minute},
		"the state is unknown": {condition.Unknown(ConditionDeployed, "R", ""), time.Minute},
	} {
		k := holder(t, status.Deployed, deployCondition(tc.condition, time.Minute))
		if got := k.notRunning(k.scope); got != tc.want {
			t.Errorf("when %s, it is off for %s", name, got)
		}
	}
}

// TestLimits checks the timeouts: those for deployment and boot are in the MaasMachine, the others in the settings of
// the provider.
func TestLimits(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	m := holding()
	want := map[lifecycle.Limit]time.Duration{
		lifecycle.DeployLimit: time.Hour, lifecycle.BootLimit: 20 * time.Minute, lifecycle.ReleaseLimit: 10 * time.Minute,
		lifecycle.EraseLimit: 24 * time.Hour, lifecycle.MaintenanceLimit: time.Hour,
	}
	expect := func() {
		t.Helper()
		for limit, d := range want {
			if got := r.limit(&scope{machine: m}, limit); got != d {
				t.Errorf("%s is %s", limit, got)
			}
		}
	}
	expect()
	m.Spec.Timeouts.Deploy, m.Spec.Timeouts.Boot = &metav1.Duration{Duration: 7 * time.Minute}, &metav1.Duration{Duration: 8 * time.Minute}
	want[lifecycle.DeployLimit], want[lifecycle.BootLimit] = 7*time.Minute, 8*time.Minute
	r.Timing.Maintenance = 9 * time.Minute
	want[lifecycle.MaintenanceLimit] = 9 * time.Minute
	expect()
}

// TestPoolIsMarked checks that the MachineSet names the pool if there is no MachineDeployment.
func TestPoolIsMarked(t *testing.T) {
	t.Parallel()
	k := holder(t, status.Allocated, func(m *infrav1.MaasMachine) { m.Labels = map[string]string{clusterv1.MachineSetNameLabel: "set"} })
	if got := k.marks()[maas.AnnotationPool]; got != "set" {
		t.Errorf("it is %q", got)
	}
}
