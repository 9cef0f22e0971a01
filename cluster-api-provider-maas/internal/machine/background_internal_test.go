// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// failedOn records failed deployments on earlier machines of the MaasMachine.
func failedOn(t *testing.T, failures ...failure) func(*infrav1.MaasMachine) {
	t.Helper()
	return func(m *infrav1.MaasMachine) {
		if err := setFailures(m, failures); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBackground checks that each failed machine is released independently of the others and of the other phases.
// Completed releases are recorded.
func TestBackground(t *testing.T) {
	t.Parallel()
	refuse := func(k *rack) {
		simtest.Refuse(k.t, k.site.Simulator, "machine.release", "failed", http.StatusServiceUnavailable, "the BMC is dead")
	}
	// left holds the machines that are not released yet, as "id action reason".
	for name, tc := range map[string]struct {
		failed status.Status
		set    func(*rack)
		other  bool
		again  time.Duration
		left   []string
		events []string
	}{
		"one is being released":                                  {failed: status.FailedDeployment, again: 10 * time.Second, left: []string{"failed Wait MachineReleasing"}, events: []string{lifecycle.ReasonReleasing}},
		"MAAS has released the machine":                          {failed: status.Ready, events: []string{lifecycle.ReasonReleased}},
		"MAAS rejects the release":                               {failed: status.FailedDeployment, set: refuse, again: 2 * time.Minute, left: []string{"failed Stuck MAASUnavailable"}},
		"MAAS cannot list machines":                              {failed: status.FailedDeployment, set: func(k *rack) { away(k, "machines.read", "machine.read") }, again: 2 * time.Minute, left: []string{"failed Stuck MAASUnavailable"}},
		"one release is rejected and another one is in progress": {failed: status.FailedDeployment, set: refuse, other: true, again: 10 * time.Second, left: []string{"failed Stuck MAASUnavailable", "other1 Wait MachineReleasing"}, events: []string{lifecycle.ReasonReleasing}},
		"one is released and another one is being released":      {failed: status.Ready, other: true, again: 10 * time.Second, left: []string{"other1 Wait MachineReleasing"}, events: []string{lifecycle.ReasonReleased, lifecycle.ReasonReleasing}},
	} {
		t.Run("When "+name+", it should report the pending releases", func(t *testing.T) {
			t.Parallel()
			failures := []failure{{SystemID: "failed", Address: &address{IP: staticIP, SystemID: "gone"}}, {SystemID: "before", Released: true}}
			if tc.other {
				failures = append(failures, failure{SystemID: "other1"})
			}
			k := seeker(t, "alice", sibling("self", annotated(UIDAnnotation, "self"), failedOn(t, failures...)), allocated("failed", "self", tc.failed), allocated("other1", "self", status.FailedDeployment))
			for _, id := range []string{"failed", "other1"} {
				k.site.Change(id, func(m *inventory.Machine) { m.PowerState = "on" }) // A release then takes some time.
			}
			if tc.failed == status.Ready {
				k.site.Change("failed", func(m *inventory.Machine) { m.Owner, m.AgentName = "", "" })
			}
			k.unreleased.add("failed", Problem{ReasonUnavailable, "long ago"}, k.site.Clock.Now().Add(-time.Hour))
			maybe(tc.set, k)
			result, err := k.background(t.Context(), k.scope)
			k.expectReason(result, err, "", tc.again)
			var left []string
			for _, u := range k.findings.outstanding {
				left = append(left, strings.Join([]string{u.former.systemID(), string(u.Action), u.Reason}, " "))
			}
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			k.expectEvents(tc.events...)
			stored := failuresOf(k.stored())
			if back := len(tc.left) == 0 || tc.left[0] == "other1 Wait MachineReleasing"; stored[0].Released != back || (stored[0].Address == nil) != back || !stored[1].Released || tc.other && stored[2].Released {
				t.Errorf("it wrote down %+v", stored)
			}
			first := k.unreleased.add("failed", Problem{}, k.site.Clock.Now()) <= 18*time.Second
			if first != (tc.failed == status.Ready || len(tc.events) > 0 && tc.set == nil) {
				t.Errorf("its refusals begin anew: %t", first)
			}
		})
	}
}

// TestBackgroundIsCutOff checks that a cancelled reconcile reports nothing, and a failed write is an error.
func TestBackgroundIsCutOff(t *testing.T) {
	t.Parallel()
	self := func() *infrav1.MaasMachine { return sibling("self", failedOn(t, failure{SystemID: "failed"})) }
	k := seeker(t, "alice", self(), simtest.Machine{ID: "failed"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.background(ctx, k.scope); !errors.Is(err, context.Canceled) || len(k.findings.outstanding) > 0 {
		t.Errorf("it is %+v, %v", k.findings.outstanding, err)
	}
	k = seeker(t, "alice", self(), simtest.Machine{ID: "failed"})
	unwritable[*infrav1.MaasMachine](k)
	if _, err := k.background(t.Context(), k.scope); !errors.Is(err, errUnwritten) {
		t.Errorf("it is told as done: %v", err)
	}
}

// TestFormerly checks that a machine is released in the background as if it were still allocated, by the same user
// and with its address.
func TestFormerly(t *testing.T) {
	t.Parallel()
	k := holder(t, status.Deployed, annotated(AddressAnnotation, `{"ip": "10.0.0.9", "systemID": "m1"}`))
	id := "maas:///default/m1"
	k.machine.Spec.ProviderID = &id
	a := address{IP: staticIP, SystemID: "failed", Replaced: "dhcp"}
	f := k.formerly(failure{SystemID: "failed", Address: &a})
	if f.systemID() != "failed" || f.providerID() != "" || addressOf(f.machine) != a || f.owner != k.owner || f.cluster != k.cluster || f.infra != k.infra ||
		f.identity != k.identity || f.user != "alice" || f.observed != nil {
		t.Errorf("it is %+v", f)
	}
	if got := addressOf(k.formerly(failure{SystemID: "failed"}).machine); got != (address{}) {
		t.Errorf("it has the address of the next one: %+v", got)
	}
	if k.systemID() != "m1" || k.providerID() != id || addressOf(k.machine).IP != "10.0.0.9" {
		t.Errorf("the MaasMachine itself was changed: %+v", k.machine)
	}
}

// TestBackgroundTakesAddressOff checks that a failed machine keeps the address until it is unassigned, and does not
// count as released before.
func TestBackgroundTakesAddressOff(t *testing.T) {
	t.Parallel()
	k := addressed(t, "admin")
	if ok, _, err := k.place(t.Context(), k.scope); !ok {
		t.Fatal(err)
	}
	a := addressOf(k.machine)
	k.site.Change("m1", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Ready, "", "" })
	k.identity.Inventory.Forget("m1")
	k.machine.Spec.SystemID, k.observed = nil, nil
	delete(k.machine.Annotations, AddressAnnotation)
	failedOn(t, failure{SystemID: "m1", Address: &a})(k.machine)
	accept := simtest.Refuse(t, k.site.Simulator, "interface.unlink_subnet", "", http.StatusServiceUnavailable, "busy")
	if _, err := k.background(t.Context(), k.scope); err != nil || len(k.findings.outstanding) != 1 || k.findings.outstanding[0].Reason != ReasonUnavailable {
		t.Errorf("it is %+v, %v", k.findings.outstanding, err)
	}
	accept()
	k.findings = findings{}
	if _, err := k.background(t.Context(), k.scope); err != nil || len(k.findings.outstanding) > 0 {
		t.Errorf("it is %+v, %v", k.findings.outstanding, err)
	}
	k.expectLinks("at the end", "auto")
}

// TestOutstandingCondition checks that the condition has the reason of the last machine, and the messages of all.
func TestOutstandingCondition(t *testing.T) {
	t.Parallel()
	before := []metav1.Condition{condition.False(ConditionOutstanding, lifecycle.ReasonReleasing, "")}
	other := []metav1.Condition{condition.False(ConditionDeployed, lifecycle.ReasonReleasing, "")}
	two := []unreleased{{Outcome: lifecycle.Outcome{Reason: "A", Message: "first"}}, {Outcome: lifecycle.Outcome{Reason: "B", Message: "second"}}}
	for name, tc := range map[string]struct {
		failures []failure
		found    []unreleased
		before   []metav1.Condition
		want     string
		words    string
	}{
		"there never was one":                         {before: other},
		"all are released":                            {failures: []failure{{SystemID: "a", Released: true}}, before: before, want: "True MachineReleased"},
		"it was not checked":                          {failures: []failure{{SystemID: "a"}}, want: "False MachineReleasing"},
		"two are not released, for different reasons": {failures: []failure{{SystemID: "a"}, {SystemID: "b"}}, found: two, want: "False B", words: "first | second"},
	} {
		s := &scope{machine: sibling("self", failedOn(t, tc.failures...))}
		s.machine.Status.Conditions, s.findings.outstanding = tc.before, tc.found
		got := ""
		c := s.outstandingCondition()
		if c != nil {
			got = string(c.Status) + " " + c.Reason
		}
		if got != tc.want || c != nil && !strings.HasSuffix(c.Message, tc.words) {
			t.Errorf("when %s, it is %+v", name, c)
		}
	}
}
