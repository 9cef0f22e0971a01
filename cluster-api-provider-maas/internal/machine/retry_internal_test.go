// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// failing returns a fixture in which the nth deployment failed, on a machine of host h1.
func failing(t *testing.T, n int) *rack {
	t.Helper()
	self := sibling("self", running("aaaaa1"), annotated(UIDAnnotation, "self"), placed("other"))
	var failures []failure
	for i := range n - 1 {
		failures = append(failures, failure{SystemID: fmt.Sprint("before", i), Released: true})
	}
	if err := setFailures(self, failures); err != nil {
		t.Fatal(err)
	}
	seed := allocated("aaaaa1", "self", status.FailedDeployment)
	seed.Power = "on"
	k := newRack(t, "alice", self, seed)
	k.look("aaaaa1").infra = nil
	k.site.ResetRequests()
	return k
}

var deployFailed = lifecycle.Outcome{Action: lifecycle.Retry, Reason: lifecycle.ReasonDeployFailed, Message: "it failed"}

// TestGiveUp checks that a failed deployment is recorded before its machine is released, and that the machine is set
// aside for a while.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	k := failing(t, 2)
	k.refusals.add("aaaaa1", Problem{"Refused", "words"}, noon)
	result, err := k.giveUp(t.Context(), k.scope, deployFailed)
	if err != nil || !soon(result, 10*time.Second) {
		t.Errorf("%v, %v", result, err)
	}
	got := failuresOf(k.machine)
	want := failure{SystemID: "aaaaa1", Hostname: "host-aaaaa1", At: noon, Reason: lifecycle.ReasonDeployFailed, Host: "h1", Words: "it failed"}
	if len(got) != 2 || !cmp.Equal(got[1], want) || got[0].SystemID != "before0" {
		t.Errorf("it is written down as %+v", got)
	}
	if diff := cmp.Diff([]string{"Warning MachineDeployFailed", "Normal MachineReleasing"}, told(k.Recorder.(*events.FakeRecorder))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if o := k.findings.outcome; o.Reason != lifecycle.ReasonDeployFailed || !strings.Contains(o.Message, "it failed") || k.findings.problem != nil {
		t.Errorf("it is told %+v", o)
	}
	if until := k.identity.SetAside.Has("aaaaa1"); !until {
		t.Error("it may be picked at once")
	}
	if n := k.asked("machine.release"); n != 1 {
		t.Errorf("it is given back %d times", n)
	}
	for what, fails := range map[string]func(*rack){
		"the failure": unwritable[*infrav1.MaasMachine],
		"the quarantine": func(k *rack) {
			k.infra = &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
			unwritable[*infrav1.MaasCluster](k)
		},
	} {
		k := failing(t, 1)
		fails(k)
		if _, err := k.giveUp(t.Context(), k.scope, deployFailed); !errors.Is(err, errUnwritten) || k.asked("machine.release") != 0 {
			t.Errorf("%s is not written down, and it is given back: %v", what, err)
		}
	}
}

// TestExhausted checks that the last machine stays allocated so that users can inspect it. Its failure is reported
// once, with the message from MAAS.
func TestExhausted(t *testing.T) {
	t.Parallel()
	k := failing(t, 3)
	k.findings.problem = &Problem{"Former", "words"}
	for range 2 {
		result, err := k.giveUp(t.Context(), k.scope, deployFailed)
		if err != nil || !soon(result, 2*time.Minute) || k.findings.problem != nil {
			t.Errorf("%v, %v, %+v", result, err, k.findings.problem)
		}
		o := k.findings.outcome
		if o.Action != lifecycle.Failed || o.Reason != ReasonAttemptsExhausted || !strings.Contains(o.Message, "3 machines") || strings.Count(o.Message, "it failed") != 1 {
			t.Errorf("it is told %+v", o)
		}
		k.machine.Status.Conditions = []metav1.Condition{condition.False(ConditionDeployed, o.Reason, o.Message)}
	}
	if n := k.asked("events.query"); n > 1 {
		t.Errorf("MAAS was asked %d times what happened", n)
	}
	if k.site.Has("aaaaa1").Status != status.FailedDeployment || len(failuresOf(k.machine)) != 2 {
		t.Errorf("it is given back: %v", failuresOf(k.machine))
	}
}

// TestGaveUp checks that gaveUp is true only while the MaasMachine has a machine and its attempts are exhausted.
func TestGaveUp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		held   bool
		reason string
		want   bool
	}{
		"its attempts are exhausted": {true, ReasonAttemptsExhausted, true},
		"it no longer has a machine": {false, ReasonAttemptsExhausted, false},
		"it fails":                   {true, lifecycle.ReasonDeployFailed, false},
		"it has no condition":        {true, "", false},
	} {
		m := holding()
		if !tc.held {
			m.Spec = infrav1.MaasMachineSpec{}
		}
		if tc.reason != "" {
			m.Status.Conditions = []metav1.Condition{condition.False(ConditionDeployed, tc.reason, "")}
		}
		if got := (&scope{machine: m}).gaveUp(); got != tc.want {
			t.Errorf("when %s, it gave up: %t", name, got)
		}
	}
}

// TestWithEvents checks that MAAS's last warnings about the machine are appended to the failure message. When MAAS does
// not answer, the message stays as it is.
func TestWithEvents(t *testing.T) {
	t.Parallel()
	l := newLife(t, "alice", simtest.Seed(simtest.Machine{ID: "aaaaa1"}, simtest.Machine{ID: "aaaaa2"}))
	simtest.FailDeployments(t, l.site.Simulator, "*", 2)
	l.pass(0)
	l.pass(2 * time.Minute)
	id, err := l.Identities.For(t.Context(), client.ObjectKey{})
	if err != nil {
		t.Fatal(err)
	}
	failed := failuresOf(l.now())[0].SystemID
	s := &scope{machine: holding(), identity: id}
	s.machine.Spec.SystemID = &failed
	got := l.withEvents(t.Context(), s, "it failed")
	if before, after, ok := strings.Cut(got, "; last events in MAAS: "); !ok || before != "it failed" || after == "" || strings.Contains(after, "INFO") {
		t.Errorf("it is told %q", got)
	}
	page, err := id.Client.ListEvents(t.Context(), maas.EventFilter{SystemIDs: []string{failed}, Level: "WARNING", Limit: 5})
	if err != nil || strings.Count(got, " | ") != len(page.Events)-1 {
		t.Errorf("withEvents returned %q for %d events: %v", got, len(page.Events), err)
	}
	s.machine.Spec.SystemID = ptr.To("nobody")
	if got := l.withEvents(t.Context(), s, "it failed"); got != "it failed" {
		t.Errorf("without events it is told %q", got)
	}
	s.machine.Spec.SystemID = &failed
	simtest.Fault(t, l.site.Simulator, faults.Rule{Kind: faults.Error, Status: http.StatusBadGateway})
	if got := l.withEvents(t.Context(), s, "it failed"); got != "it failed" {
		t.Errorf("without an answer it is told %q", got)
	}
}

// TestRetry checks that another machine is tried once MAAS has released the failed one, or has not released it in time.
func TestRetry(t *testing.T) {
	t.Parallel()
	gone := func(k *rack) {
		k.site.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Ready, "", "" })
		k.look("aaaaa1")
	}
	refuse := func(code int) func(*rack) {
		return func(k *rack) {
			simtest.Refuse(k.t, k.site.Simulator, "machine.release", "aaaaa1", code, "the BMC is dead")
		}
	}
	for name, tc := range map[string]struct {
		prepare func(*rack)
		ago     time.Duration
		held    bool
		again   time.Duration
		events  []string
	}{
		"MAAS is releasing it":     {nil, 10*time.Minute - 1, true, 10 * time.Second, []string{"Normal MachineReleasing"}},
		"MAAS takes too long":      {nil, 10 * time.Minute, false, time.Second, []string{"Normal MachineReleasing", "Warning MachineReleaseFailed"}},
		"MAAS rejects the release": {refuse(http.StatusServiceUnavailable), 0, false, time.Second, []string{"Warning MachineReleaseFailed"}},
		"MAAS forbids the release": {refuse(http.StatusForbidden), 0, true, 15 * time.Second, nil},
		"MAAS has released it":     {gone, 0, false, time.Second, []string{"Normal MachineReleased"}},
	} {
		t.Run("When "+name+", it should try another machine or wait", func(t *testing.T) {
			t.Parallel()
			k := failing(t, 2)
			failures := append(failuresOf(k.machine), failure{SystemID: "aaaaa1", At: noon.Add(-tc.ago), Reason: "Why", Words: "words"})
			if err := k.write(t.Context(), k.scope, func() error { return setFailures(k.machine, failures) }); err != nil {
				t.Fatal(err)
			}
			maybe(tc.prepare, k)
			result, err := k.retry(t.Context(), k.scope)
			if err != nil && !errors.Is(err, phase.ErrStop) || result.RequeueAfter < tc.again || result.RequeueAfter > tc.again+tc.again/5 {
				t.Errorf("%v, %v", result, err)
			}
			if held := k.systemID() != ""; held != tc.held {
				t.Errorf("it is held: %t", held)
			}
			if diff := cmp.Diff(tc.events, told(k.Recorder.(*events.FakeRecorder))); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			last := k.lastFailure()
			if back := tc.events != nil && tc.events[0] == "Normal MachineReleased"; last.Released != back {
				t.Errorf("it is written down as released: %t", last.Released)
			}
			switch o, p := k.findings.outcome, k.findings.problem; {
			case tc.again == 10*time.Second && (o.Action != lifecycle.Wait || o.Reason != "Why" || !strings.HasPrefix(o.Message, "words")):
				t.Errorf("it is told %+v", o)
			case !tc.held && (p == nil || p.Reason != "Why" || !strings.HasPrefix(p.Message, "words")):
				t.Errorf("it is told %+v", p)
			}
		})
	}
}

// TestVacate checks that the MaasMachine keeps nothing of the failed machine, except an address that must be released
// with it.
func TestVacate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		released bool
		at       string
		left     *address
		next     address
	}{
		"MAAS has released it":           {true, "aaaaa1", nil, address{IP: "10.0.0.7"}},
		"MAAS has not released it":       {false, "aaaaa1", &address{IP: "10.0.0.7", SystemID: "aaaaa1", Replaced: "auto"}, address{}},
		"the address was never assigned": {false, "", nil, address{IP: "10.0.0.7"}},
	} {
		k := failing(t, 2)
		failures := append(failuresOf(k.machine), failure{SystemID: "other"}, failure{SystemID: "aaaaa1", Reason: "Why", Words: "words"})
		k.machine.Spec.ProviderID = ptr.To("maas:///az1/aaaaa1")
		own := address{IP: "10.0.0.7", SystemID: tc.at}
		if tc.at != "" {
			own.Replaced = "auto"
		}
		if err := errors.Join(setFailures(k.machine, failures), setAddress(k.machine, own)); err != nil {
			t.Fatal(err)
		}
		if err := k.Client.Update(t.Context(), k.machine); err != nil {
			t.Fatal(err)
		}
		k.subnet = &maas.Subnet{}
		result, err := k.vacate(t.Context(), k.scope, tc.released)
		if err != nil || result.RequeueAfter != time.Second || k.observed != nil || k.subnet != nil {
			t.Errorf("when %s: %v, %v", name, result, err)
		}
		stored := &infrav1.MaasMachine{}
		if err := k.Client.Get(t.Context(), client.ObjectKeyFromObject(k.machine), stored); err != nil {
			t.Fatal(err)
		}
		if stored.Spec.SystemID != nil || stored.Spec.ProviderID != nil || lxd.PlacementOf(stored) != nil || addressOf(stored) != tc.next {
			t.Errorf("when %s, it is left with %v, %v", name, stored.Spec, stored.Annotations)
		}
		got := failuresOf(stored)
		if len(got) != 3 || got[1].Released || got[1].Address != nil || got[2].Released != tc.released || !cmp.Equal(got[2].Address, tc.left) {
			t.Errorf("when %s, the failures are %+v", name, got)
		}
	}
	k := failing(t, 1)
	unwritable[*infrav1.MaasMachine](k)
	if _, err := k.vacate(t.Context(), k.scope, true); !errors.Is(err, errUnwritten) || k.observed == nil {
		t.Errorf("what is not written down is not so: %v", err)
	}
	if got := k.lastFailure(); got.Reason != lifecycle.ReasonDeployFailed || got.Words == "" {
		t.Errorf("where a person took the failures away, the last one is %+v", got)
	}
}

// TestFailsEverywhere checks that three machines are tried, each once, and that the last one stays allocated.
func TestFailsEverywhere(t *testing.T) {
	t.Parallel()
	l := newLife(t, "alice", simtest.Seed(simtest.Machine{ID: "aaaaa1"}, simtest.Machine{ID: "aaaaa2"}, simtest.Machine{ID: "aaaaa3"}, simtest.Machine{ID: "aaaaa4"}))
	simtest.FailDeployments(t, l.site.Simulator, "*", 4)
	for range 12 {
		l.pass(2 * time.Minute)
	}
	m := l.now()
	seen := map[string]bool{deref(m.Spec.SystemID): true}
	for _, f := range failuresOf(m) {
		seen[f.SystemID] = f.Released
	}
	c := meta.FindStatusCondition(m.Status.Conditions, ConditionReady)
	if len(seen) != 3 || c.Reason != ReasonAttemptsExhausted || deref(m.Status.FailureReason) != "CreateError" || m.Status.Attempts != 2 {
		t.Errorf("it was tried on %v: %+v", seen, c)
	}
	for id, back := range seen {
		record := quarantine.Records.Of(l.infra())[id]
		if record.Failures != 1 || record.Hostname != "host-"+id || record.Image != "custom/node-image" || !back {
			t.Errorf("of %s is known %+v; back: %t", id, record, back)
		}
	}
}
