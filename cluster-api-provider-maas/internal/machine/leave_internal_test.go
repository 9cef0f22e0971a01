// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// flags returns the name of each phase, and whether its failure stops the reconcile.
func flags(t *testing.T, phases []phase.Phase[*scope]) []string {
	t.Helper()
	var all []string
	for _, p := range phases {
		if p.Run == nil {
			t.Errorf("phase %s does nothing", p.Name)
		}
		all = append(all, fmt.Sprintf("%s %t", p.Name, p.Critical))
	}
	return all
}

// TestDeletionPhases checks that a MaasMachine for which no machine was requested is deleted even if MAAS is
// unreachable. Any other MaasMachine stays until MAAS answers.
func TestDeletionPhases(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	want := []string{"credentials true", "failed machines false", "machine in MAAS true", "ownership true", "delegating the release of failed machines true", "release true", "virtual machine true", "leftovers true"}
	fails := func(m *infrav1.MaasMachine) {
		if err := setFailures(m, []failure{{SystemID: "x"}}); err != nil {
			panic(err)
		}
	}
	for name, tc := range map[string]struct {
		machine *infrav1.MaasMachine
		asked   bool
	}{
		"MAAS was never asked":                  {sibling("a"), false},
		"it has a machine":                      {sibling("a", running("x")), true},
		"an answer was not received":            {sibling("a", annotated(AttemptAnnotation, "2026-11-22T12:00:00Z")), true},
		"a failed machine is not released":      {sibling("a", fails), true},
		"a virtual machine may exist on a host": {virtual(placed("")), true},
	} {
		got := flags(t, r.deletion(&scope{machine: tc.machine}))
		if !tc.asked {
			if got != nil {
				t.Errorf("when %s, it waits for %v", name, got)
			}
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("when %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWholeLife runs a MaasMachine from creation to deletion, reconcile by reconcile.
func TestWholeLife(t *testing.T) {
	t.Parallel()
	l := newLife(t, "alice", simtest.Seed(simtest.Machine{ID: "aaaaa1"}))
	l.expect(0, 10*time.Second, "False MachineDeploying", "Normal MachineAllocated", "Normal MachineDeploying")
	l.expect(10*time.Second, 10*time.Second, "False MachineDeploying")
	l.expect(110*time.Second, 2*time.Minute, "True Ready", "Normal MachineDeployed")
	l.remove()
	l.expect(time.Second, 10*time.Second, "False MachineReleasing", "Normal MachineReleasing")
	l.expect(time.Second, 10*time.Second, "False MachineReleasing")
	l.expect(time.Minute, 0, "", "Normal MachineReleased")
	if l.now().Name != "" {
		t.Error("it is not gone")
	}
}

// TestReleaseRefused checks that a rejected release is reported, retried with a backoff, and never forgotten.
func TestReleaseRefused(t *testing.T) {
	t.Parallel()
	l := newLife(t, "alice", simtest.Seed(simtest.Machine{ID: "aaaaa1"})).runs()
	accept := simtest.Refuse(t, l.site.Simulator, "machine.release", "aaaaa1", http.StatusServiceUnavailable, "the BMC is dead")
	l.remove()
	l.expect(time.Second, 15*time.Second, "False MAASUnavailable", "Warning MAASUnavailable")
	l.site.ResetRequests()
	// MAAS is not called before the backoff ends.
	l.expect(time.Second, 2*time.Minute, "False MAASUnavailable")
	if n := l.site.Load.Report().Of("machine.release").Calls; n != 0 {
		t.Errorf("MAAS was asked %d times", n)
	}
	l.expect(time.Minute, 15*time.Second, "False MAASUnavailable")
	accept()
	l.expect(2*time.Minute, 10*time.Second, "False MachineReleasing", "Normal MachineReleasing")
	l.expect(time.Minute, 0, "", "Normal MachineReleased")
}

// TestOverdueRelease checks that after the timeout the release is delegated to the MaasCluster, if that has its
// finalizer. An unreachable MAAS has not rejected anything.
func TestOverdueRelease(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code      int
		finalizer bool
		handed    bool
	}{
		"it refuses":                 {http.StatusServiceUnavailable, true, true},
		"it forbids":                 {http.StatusForbidden, true, true},
		"no controller continues it": {http.StatusServiceUnavailable, false, false},
		"it forbids the release, and no cluster can continue": {http.StatusForbidden, false, false},
		"it fails":                   {http.StatusInternalServerError, true, true},
		"it rejects the credentials": {http.StatusUnauthorized, true, false},
	} {
		t.Run("When "+name+", it should decide which controller continues", func(t *testing.T) {
			t.Parallel()
			l := newLife(t, "alice", simtest.Seed(simtest.Machine{ID: "aaaaa1"})).runs()
			if tc.finalizer {
				change(l, l.infra(), func(m *infrav1.MaasCluster) { m.Finalizers = []string{infrav1.ClusterFinalizer} })
			}
			simtest.Refuse(t, l.site.Simulator, "machine.release", "aaaaa1", tc.code, "no")
			l.remove()
			l.pass(time.Second)
			if l.now().Name == "" || len(handover.Records.Of(l.infra())) > 0 {
				t.Fatal("it is left to the cluster at once")
			}
			l.pass(9 * time.Minute)
			told(l.said)
			result := l.pass(2 * time.Minute)
			record, handed := handover.Records.Of(l.infra())["aaaaa1"]
			if gone := l.now().Name == ""; handed != tc.handed || gone != tc.handed {
				t.Fatalf("gone: %t, handed over: %t", gone, handed)
			}
			if handed && (record.Machine != "m" || record.Words == "" || record.User != "alice") {
				t.Errorf("it is handed over as %+v", record)
			}
			if !handed && result.RequeueAfter < 15*time.Second {
				t.Errorf("it is looked at again after %s", result.RequeueAfter)
			}
		})
	}
}

// TestGiveBackNothing checks that a machine is not released if it is missing, if its release is delegated, or if it
// is already reserved.
func TestGiveBackNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		id      string
		prepare func(*rack) error
	}{
		"it has no machine":                       {"", nil},
		"the release is delegated to the cluster": {"aaaaa1", func(k *rack) error { return handover.Records.Set(k.infra, "aaaaa1", handover.Record{UID: "self"}) }},
		"it is reserved for the successor": {"aaaaa1", func(k *rack) error {
			return reservation.Records.Set(k.infra, "aaaaa1", reservation.Record{UID: "self"})
		}},
	} {
		self := sibling("self", annotated(UIDAnnotation, "self"))
		if tc.id != "" {
			self.Spec.SystemID = &tc.id
		}
		leaving(self)
		k := newRack(t, "alice", self, allocated("aaaaa1", "self", status.Allocated))
		if tc.prepare != nil {
			if err := tc.prepare(k); err != nil {
				t.Fatal(err)
			}
		}
		if tc.id != "" {
			k.observed = &maas.Machine{SystemID: "aaaaa1", Owner: "alice", Status: maas.StatusAllocated}
		}
		result, err := k.giveBack(t.Context(), k.scope)
		if err != nil || result.RequeueAfter != 0 || k.site.Has("aaaaa1").Status != status.Allocated {
			t.Errorf("when %s, it is %v: %v, %v", name, k.site.Has("aaaaa1").Status, result, err)
		}
	}
}

// TestHowOftenItIsLookedAt checks that a release in progress is checked often, a machine that will be allocated again
// most often. A state that only an administrator ends is checked seldom.
func TestHowOftenItIsLookedAt(t *testing.T) {
	t.Parallel()
	kept := annotated(KeptAnnotation, "pool")
	for name, tc := range map[string]struct {
		machine *infrav1.MaasMachine
		action  lifecycle.Action
		want    time.Duration
	}{
		"MAAS is releasing it":                               {sibling("a"), lifecycle.Wait, 10 * time.Second},
		"the release is to be requested":                     {sibling("a"), lifecycle.Release, 10 * time.Second},
		"it is to be allocated again":                        {sibling("a", kept), lifecycle.Wait, time.Second},
		"it is reserved, and the release failed":             {sibling("a", kept), lifecycle.Stuck, 2 * time.Minute},
		"the release failed":                                 {sibling("a"), lifecycle.Stuck, 2 * time.Minute},
		"the release needs an administrator":                 {sibling("a"), lifecycle.Blocked, 2 * time.Minute},
		"it is reserved, and the release is to be requested": {sibling("a", kept), lifecycle.Release, 10 * time.Second},
	} {
		r, _, _ := quiet()
		if got := r.leaveEvery(&scope{machine: tc.machine}, lifecycle.Outcome{Action: tc.action}); got < tc.want || got > tc.want+tc.want/5 {
			t.Errorf("when %s, it is looked at after %s", name, got)
		}
	}
}

// TestLeave checks that a machine is released once, and only if it belongs to this MaasMachine. A failed release is
// repeated from time to time.
func TestLeave(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		is      status.Status
		uid     string
		prepare func(*rack)
		want    lifecycle.Action
		calls   int
		events  []string
	}{
		"it runs":                                     {status.Deployed, "self", nil, lifecycle.Wait, 1, []string{"Normal MachineReleasing"}},
		"another user has it":                         {status.Deployed, "other", nil, lifecycle.Gone, 0, nil},
		"MAAS is releasing it":                        {status.Releasing, "self", nil, lifecycle.Wait, 0, nil},
		"MAAS has released it":                        {status.Ready, "", nil, lifecycle.Gone, 0, nil},
		"the release needs an administrator":          {status.RescueMode, "self", nil, lifecycle.Blocked, 0, nil},
		"the release failed":                          {status.FailedReleasing, "self", nil, lifecycle.Stuck, 1, nil},
		"the erasure failed":                          {status.FailedDiskErasing, "self", nil, lifecycle.Stuck, 1, nil},
		"the failed release was retried a moment ago": {status.FailedReleasing, "self", func(k *rack) { k.released.due("aaaaa1", noon.Add(-releaseAgainEvery+1)) }, lifecycle.Stuck, 0, nil},
		"the failed release was retried a while ago":  {status.FailedReleasing, "self", func(k *rack) { k.released.due("aaaaa1", noon.Add(-releaseAgainEvery)) }, lifecycle.Stuck, 1, nil},
		"MAAS rejected the release a moment ago":      {status.Deployed, "self", func(k *rack) { k.unreleased.add("aaaaa1", Problem{"Refused", "words"}, noon) }, lifecycle.Stuck, 0, nil},
		"MAAS rejected the release a while ago":       {status.Deployed, "self", func(k *rack) { k.unreleased.add("aaaaa1", Problem{"Refused", "words"}, noon.Add(-time.Hour)) }, lifecycle.Wait, 1, []string{"Normal MachineReleasing"}},
		"MAAS does not have it any more":              {status.FailedReleasing, "self", func(k *rack) { k.site.ResetRequests(); k.observed.SystemID = "nobody" }, lifecycle.Gone, 1, nil},
	} {
		t.Run("When "+name+", it should be released only if that is due", func(t *testing.T) {
			t.Parallel()
			seed := allocated("aaaaa1", tc.uid, tc.is)
			seed.Power = "on"
			k := newRack(t, "alice", sibling("self", annotated(UIDAnnotation, "self")), seed)
			k.look("aaaaa1")
			maybe(tc.prepare, k)
			k.asked("")
			left, err := k.leave(t.Context(), k.scope, k.observed)
			if err != nil || left.Action != tc.want || left.Message == "" {
				t.Errorf("it is to %s: %q, %v", left.Action, left.Message, err)
			}
			if n := k.asked("machine.release"); n != tc.calls {
				t.Errorf("MAAS was asked %d times", n)
			}
			if diff := cmp.Diff(tc.events, told(k.Recorder.(*events.FakeRecorder))); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if _, pause := k.unreleased.standing("aaaaa1", noon); (pause > 0) != (left.Reason == "Refused") {
				t.Errorf("the refusal stands for %s", pause)
			}
		})
	}
}

// TestReleaseFails checks that a rejected release is not repeated immediately. An unreachable MAAS has not rejected
// anything.
func TestReleaseFails(t *testing.T) {
	t.Parallel()
	for code, remembered := range map[int]bool{http.StatusServiceUnavailable: true, http.StatusConflict: true, http.StatusForbidden: false, http.StatusInternalServerError: true} {
		seed := allocated("aaaaa1", "self", status.Deployed)
		seed.Power = "on"
		k := newRack(t, "alice", sibling("self", annotated(UIDAnnotation, "self")), seed)
		read := func() *maas.Machine {
			m, err := k.identity.Inventory.Machine(t.Context(), "aaaaa1", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		k.observed = read()
		accept := simtest.Refuse(t, k.site.Simulator, "machine.release", "aaaaa1", code, "no")
		left, err := k.leave(t.Context(), k.scope, k.observed)
		if err == nil || left.Action != lifecycle.Release {
			t.Errorf("%d: it is to %s, %v", code, left.Action, err)
		}
		if _, pause := k.unreleased.standing("aaaaa1", noon); (pause > 0) != remembered {
			t.Errorf("%d is remembered for %s", code, pause)
		}
		k.site.Change("aaaaa1", func(m *inventory.Machine) { m.Hostname = "renamed" })
		if read().Hostname != "renamed" {
			t.Errorf("%d: what is known of the machine is believed after the refusal", code)
		}
		accept()
		if err := k.release(t.Context(), k.scope, k.observed, "why"); err != nil {
			t.Error(err)
		}
		if _, pause := k.unreleased.standing("aaaaa1", noon); pause > 0 || k.observed.Status != maas.StatusReleasing {
			t.Errorf("after it went well, it pauses %s, and is %v", pause, k.observed.Status)
		}
	}
}

// TestNothingIsLeft checks that all machines with the allocation key are released before the MaasMachine is gone.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	released := func(s *scope) { s.findings.outcome = lifecycle.Outcome{Action: lifecycle.Gone, Message: "it is back"} }
	back := func(action lifecycle.Action) func(*scope) {
		return func(s *scope) {
			s.findings.outstanding = []unreleased{{Outcome: lifecycle.Outcome{Action: action, Reason: "First", Message: "words"}}, {Outcome: lifecycle.Outcome{Reason: "Second"}}}
		}
	}
	ago := func(d time.Duration) *infrav1.MaasMachine {
		return sibling("self", annotated(AttemptAnnotation, noon.Add(-d).Format(time.RFC3339Nano)))
	}
	for name, tc := range map[string]struct {
		self     *infrav1.MaasMachine
		is       status.Status
		found    func(*scope)
		reason   string
		min, max time.Duration
		events   []string
	}{
		"no machine has our key":                         {sibling("self"), status.Ready, nil, "", 0, 0, nil},
		"no machine has our key, and one was released":   {sibling("self"), status.Ready, released, "", 0, 0, []string{"Normal MachineReleased"}},
		"a machine has our allocation key":               {sibling("self"), status.Allocated, released, "MachineReleasing", 10 * time.Second, 12 * time.Second, []string{"Normal MachineReleasing"}},
		"an answer was lost a moment ago":                {ago(0), status.Ready, released, "AllocationUncertain", 5 * time.Second, 6 * time.Second, nil},
		"an answer was lost just less than a minute ago": {ago(59 * time.Second), status.Ready, released, "AllocationUncertain", time.Second, time.Second, nil},
		"an answer was lost a minute ago":                {ago(time.Minute), status.Ready, nil, "", 0, 0, nil},
		"a failed machine is being released":             {sibling("self"), status.Ready, back(lifecycle.Wait), "First", 10 * time.Second, 12 * time.Second, nil},
		"a failed machine can't be released":             {sibling("self"), status.Ready, back(lifecycle.Stuck), "First", 2 * time.Minute, 144 * time.Second, nil},
	} {
		t.Run("When "+name+", it should wait for what may remain", func(t *testing.T) {
			t.Parallel()
			seed := allocated("aaaaa1", "self", tc.is)
			if tc.is == status.Ready {
				seed.AgentName, seed.Owner = "", ""
			}
			k := newRack(t, "alice", tc.self, seed)
			if tc.found != nil {
				tc.found(k.scope)
			}
			result, err := k.leftovers(t.Context(), k.scope)
			if (err != nil) != (tc.reason != "") || result.RequeueAfter < tc.min || result.RequeueAfter > tc.max {
				t.Errorf("%v, %v", result, err)
			}
			if p := k.findings.problem; (p != nil) != (tc.reason != "") || p != nil && (p.Reason != tc.reason || p.Message == "") {
				t.Errorf("it is told %+v", p)
			}
			if diff := cmp.Diff(tc.events, told(k.Recorder.(*events.FakeRecorder))); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
	for operation, code := range map[string]int{"machines.read": http.StatusServiceUnavailable, "machine.release": http.StatusForbidden} {
		k := newRack(t, "alice", sibling("self"), allocated("aaaaa1", "self", status.Allocated))
		simtest.Fault(t, k.site.Simulator, faults.Rule{Kind: faults.Error, Operation: operation, Status: code})
		if result, err := k.leftovers(t.Context(), k.scope); err == nil || !soon(result, 15*time.Second) || k.findings.problem == nil {
			t.Errorf("%s fails, and it is told %+v: %v, %v", operation, k.findings.problem, result, err)
		}
	}
}
