// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
)

// TestStage checks that the stage, which decides which states are errors, depends only on the progress of the machine,
// and not on the process.
func TestStage(t *testing.T) {
	t.Parallel()
	failed := func(released bool) func(*scope) {
		return func(s *scope) {
			if err := setFailures(s.machine, []failure{{SystemID: "other"}, {SystemID: "wq4h8c", Released: released}}); err != nil {
				panic(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(*scope)
		want   lifecycle.Stage
	}{
		"it was just allocated":                      {func(*scope) {}, lifecycle.Acquired},
		"it was last seen being deployed":            {func(s *scope) { s.seen.state = "Deploying" }, lifecycle.Installing},
		"it was last seen allocated":                 {func(s *scope) { s.seen.state = "Allocated" }, lifecycle.Acquired},
		"it ran before":                              {func(s *scope) { s.machine.Status.Initialization.Provisioned = ptr.To(true); s.seen.state = "Deploying" }, lifecycle.Provisioned},
		"its deployment failed":                      {failed(false), lifecycle.Leaving},
		"its deployment failed after it ran":         {func(s *scope) { failed(false)(s); s.machine.Status.Initialization.Provisioned = ptr.To(true) }, lifecycle.Leaving},
		"an earlier machine failed and was released": {failed(true), lifecycle.Acquired},
		"the failures annotation is corrupt":         {func(s *scope) { annotate(s.machine, FailuresAnnotation, "{") }, lifecycle.Acquired},
	} {
		s := &scope{machine: holding()}
		tc.change(s)
		if got := s.stage(); got != tc.want {
			t.Errorf("when %s, it is %v", name, got)
		}
	}
}

// TestErase checks that without an erase mode, the settings of MAAS apply.
func TestErase(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]maas.ReleaseRequest{
		"":       {Comment: "why"},
		"None":   {Comment: "why"},
		"Quick":  {Comment: "why", Erase: true, QuickErase: true},
		"Secure": {Comment: "why", Erase: true, SecureErase: true},
		"Full":   {Comment: "why", Erase: true},
	} {
		m := holding()
		if mode != "" {
			m.Spec.Erase = &infrav1.EraseConfig{Mode: mode}
		}
		if diff := cmp.Diff(want, (&scope{machine: m}).releaseRequest(&maas.Machine{Status: maas.StatusDeployed}, "why")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", mode, diff)
		}
	}
}

// TestInTime checks that a state with a limit may last exactly that long; one without a limit may last indefinitely.
func TestInTime(t *testing.T) {
	t.Parallel()
	installing := lifecycle.Outcome{Action: lifecycle.Wait, Reason: lifecycle.ReasonDeploying, Limit: lifecycle.DeployLimit, Then: lifecycle.Retry}
	off := lifecycle.Outcome{Action: lifecycle.PowerOn, Reason: lifecycle.ReasonPoweredOff, Limit: lifecycle.BootLimit, Then: lifecycle.Failed}
	for name, tc := range map[string]struct {
		outcome lifecycle.Outcome
		after   time.Duration
		change  func(*scope)
		late    bool
	}{
		"an installation reaches its timeout":                {installing, infrav1.DefaultDeployTimeout, nil, false},
		"an installation exceeds its timeout":                {installing, infrav1.DefaultDeployTimeout + 1, nil, true},
		"the spec allows more time":                          {installing, infrav1.DefaultDeployTimeout + 1, func(s *scope) { s.machine.Spec.Timeouts.Deploy = &metav1.Duration{Duration: 2 * time.Hour} }, false},
		"the spec allows less time":                          {installing, time.Minute + 1, func(s *scope) { s.machine.Spec.Timeouts.Deploy = &metav1.Duration{Duration: time.Minute} }, true},
		"its state has changed since":                        {installing, 100 * time.Hour, func(s *scope) { s.seen.state = "Allocated" }, false},
		"its start is unknown":                               {installing, 100 * time.Hour, func(s *scope) { s.seen.since = time.Time{} }, false},
		"MAAS does not show it":                              {installing, 100 * time.Hour, func(s *scope) { s.observed = nil }, false},
		"a state has no limit":                               {lifecycle.Outcome{Action: lifecycle.Wait}, 1000 * time.Hour, nil, false},
		"a release reaches its timeout":                      {lifecycle.Outcome{Action: lifecycle.Wait, Limit: lifecycle.ReleaseLimit, Then: lifecycle.Blocked}, 10 * time.Minute, nil, false},
		"a release exceeds its timeout":                      {lifecycle.Outcome{Action: lifecycle.Wait, Limit: lifecycle.ReleaseLimit, Then: lifecycle.Blocked}, 10*time.Minute + 1, nil, true},
		"disks are erased for hours":                         {lifecycle.Outcome{Action: lifecycle.Wait, Limit: lifecycle.EraseLimit, Then: lifecycle.Blocked}, 24 * time.Hour, nil, false},
		"disks are erased for more than a day":               {lifecycle.Outcome{Action: lifecycle.Wait, Limit: lifecycle.EraseLimit, Then: lifecycle.Blocked}, 24*time.Hour + 1, nil, true},
		"an administrator works on it for an hour":           {lifecycle.Outcome{Action: lifecycle.Wait, Limit: lifecycle.MaintenanceLimit, Then: lifecycle.Failed}, time.Hour, nil, false},
		"an administrator works on it for more than an hour": {lifecycle.Outcome{Action: lifecycle.Wait, Limit: lifecycle.MaintenanceLimit, Then: lifecycle.Failed}, time.Hour + 1, nil, true},
		"a machine that ran for days is powered off": {off, 100 * time.Hour, func(s *scope) {
			s.machine.Status.Conditions = []metav1.Condition{condition.True(ConditionDeployed, "R", "")}
		}, false},
		"a machine that never ran does not power on in time":  {off, infrav1.DefaultBootTimeout + 1, nil, true},
		"a machine that never ran still has time to power on": {off, infrav1.DefaultBootTimeout, nil, false},
	} {
		t.Run("When "+name+", it should be overdue only after its timeout", func(t *testing.T) {
			t.Parallel()
			r, clock, _ := quiet()
			s := &scope{machine: holding(), observed: deployed(), seen: sighting{lifecycle.StateName(deployed()), noon}}
			maybe(tc.change, s)
			clock.SetTime(noon.Add(tc.after))
			got, want := r.inTime(s, tc.outcome).Action, tc.outcome.Action
			if tc.late {
				want = tc.outcome.Then
			}
			if got != want {
				t.Errorf("it is to %s", got)
			}
		})
	}
}

// TestDoubt checks that an allocation with an unknown outcome may yield a machine for a minute, and nothing else is
// allocated until then.
func TestDoubt(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	for text, want := range map[string]time.Duration{
		"":                            0,
		"a while ago":                 0,
		noon.Format(time.RFC3339Nano): time.Minute,
		noon.Add(-59 * time.Second).Format(time.RFC3339Nano):                              time.Second,
		noon.Add(-time.Minute).Format(time.RFC3339Nano):                                   0,
		noon.Add(-time.Hour).Format(time.RFC3339Nano):                                     0,
		noon.Add(-30 * time.Second).In(time.FixedZone("", 7200)).Format(time.RFC3339Nano): 30 * time.Second,
	} {
		m := holding()
		annotate(m, AttemptAnnotation, text)
		if got := r.doubtLeft(&scope{machine: m}); got != want {
			t.Errorf("%q leaves %s", text, got)
		}
	}
}

// TestHeldUp checks that a rejected change is retried with a backoff, and after a while another machine is tried. A
// provisioned machine is never released for that, and an unreachable MAAS is not evidence.
func TestHeldUp(t *testing.T) {
	t.Parallel()
	busy := &maas.Error{StatusCode: http.StatusServiceUnavailable}
	noKernel := &maas.Error{StatusCode: http.StatusBadRequest, Fields: map[string][]string{"hwe_kernel": {"none"}}}
	noSuchImage := &maas.Error{StatusCode: http.StatusBadRequest, Fields: map[string][]string{"distro_series": {"none"}}}
	for name, tc := range map[string]struct {
		err    error
		after  time.Duration
		reason string
		paused bool
	}{
		"MAAS is busy":             {busy, infrav1.DefaultAllocateTimeout, ReasonUnavailable, true},
		"MAAS rejects a parameter": {noKernel, 2 * time.Minute, ReasonInvalid, true},
		"MAAS lacks the image":     {noSuchImage, infrav1.DefaultAllocateTimeout, ReasonImageNotFound, true},
		"MAAS is unreachable":      {&maas.UnreachableError{Err: errors.New("down")}, 100 * time.Hour, ReasonUnreachable, false},
		"MAAS forbids the call":    {&maas.Error{StatusCode: http.StatusForbidden}, 100 * time.Hour, ReasonForbidden, false},
		"MAAS rejects the key":     {&maas.Error{StatusCode: http.StatusUnauthorized}, 100 * time.Hour, ReasonUnauthorized, false},
		"another call fails":       {errors.New("what"), 100 * time.Hour, ReasonError, false},
	} {
		t.Run("When "+name+", it should retry, and try another machine if MAAS rejects this one", func(t *testing.T) {
			t.Parallel()
			r, clock, _ := quiet()
			s := &scope{machine: holding(), observed: deployed(), seen: sighting{lifecycle.StateName(deployed()), noon}}
			clock.SetTime(noon.Add(tc.after))
			result, err := r.heldUp(t.Context(), s, tc.err)
			if err == nil || s.findings.problem == nil || s.findings.problem.Reason != tc.reason || result.RequeueAfter <= 0 {
				t.Fatalf("it is %+v, and looked at again after %s: %v", s.findings.problem, result.RequeueAfter, err)
			}
			p, left := r.refusals.standing(s.systemID(), r.Clock.Now())
			if (left > 0) != tc.paused || tc.paused && (p.Reason != tc.reason || left != result.RequeueAfter) {
				t.Errorf("the machine is left alone for %s on account of %+v", left, p)
			}
			again := &scope{machine: holding(), observed: deployed()}
			if _, waits := r.pausing(again); waits != tc.paused || waits && *again.findings.problem != *s.findings.problem {
				t.Errorf("the next pass waits: %t, and says %+v", waits, again.findings.problem)
			}
		})
	}
	t.Run("When the machine ran before, it should be kept indefinitely", func(t *testing.T) {
		t.Parallel()
		r, clock, _ := quiet()
		s := &scope{machine: holding(), observed: deployed(), seen: sighting{lifecycle.StateName(deployed()), noon}}
		s.machine.Status.Initialization.Provisioned = ptr.To(true)
		clock.SetTime(noon.Add(1000 * time.Hour))
		if _, err := r.heldUp(t.Context(), s, busy); err == nil || s.findings.problem.Reason != ReasonUnavailable || len(failuresOf(s.machine)) > 0 {
			t.Errorf("it is %+v, and failed: %v", s.findings.problem, failuresOf(s.machine))
		}
	})
	t.Run("When the context is cancelled, it should report no problem", func(t *testing.T) {
		t.Parallel()
		r, _, _ := quiet()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := &scope{machine: holding(), observed: deployed()}
		if _, err := r.heldUp(ctx, s, busy); !errors.Is(err, busy) || s.findings.problem != nil {
			t.Errorf("it is %+v: %v", s.findings.problem, err)
		}
	})
}

// TestRefusesAddress checks that only a rejection of the address itself has an effect: another address is picked, or
// the machine stays allocated.
func TestRefusesAddress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"it names the field":     {&maas.Error{StatusCode: http.StatusBadRequest, Fields: map[string][]string{"ip_address": {"taken"}}}, true},
		"it names another field": {&maas.Error{StatusCode: http.StatusBadRequest, Message: "10.0.0.7", Fields: map[string][]string{"subnet": {"10.0.0.7"}}}, false},
		"it returns not found because another user has the address": {&maas.Error{StatusCode: http.StatusNotFound, Message: "IP address is already in use."}, true},
		"it names the address":                                  {&maas.Error{StatusCode: http.StatusConflict, Message: "10.0.0.7 is in use"}, true},
		"it does not have the interface":                        {&maas.Error{StatusCode: http.StatusNotFound, Message: "No Interface matches the given query."}, false},
		"it fails with an internal error and names the address": {&maas.Error{StatusCode: http.StatusInternalServerError, Message: "10.0.0.7"}, false},
		"there is no answer":                                    {&maas.UnreachableError{Sent: true, Err: errors.New("10.0.0.7: IP address is already in use")}, false},
	} {
		if got := refusesAddress(tc.err, "10.0.0.7"); got != tc.want {
			t.Errorf("when %s, it is the address: %t", name, got)
		}
	}
}

// TestIdentitySecret checks that a reference to credentials names a Secret in the namespace of the MaasCluster.
// Without a reference, the default credentials apply.
func TestIdentitySecret(t *testing.T) {
	t.Parallel()
	infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	for _, s := range []*scope{{}, {infra: infra}} {
		if got := s.identitySecret(); got != (client.ObjectKey{}) {
			t.Errorf("without a reference it is %s", got)
		}
	}
	infra.Spec.IdentityRef = &infrav1.IdentityReference{Name: "maas"}
	if got := (&scope{infra: infra}).identitySecret(); got != (client.ObjectKey{Namespace: "ns", Name: "maas"}) {
		t.Errorf("it is %s", got)
	}
}

// TestRestoredCluster checks that allocations for the lost cluster belong to the restored one, and nothing is
// allocated before they are known.
func TestRestoredCluster(t *testing.T) {
	t.Parallel()
	infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{UID: "new"}}
	if ClusterUID(infra) != "new" || AwaitsRestore(infra) || AwaitsRestore(nil) {
		t.Error("a cluster that takes nobody's place waits for somebody")
	}
	infra.Annotations = map[string]string{infrav1.RestoredFromAnnotation: "old"}
	if ClusterUID(infra) != "old" || !AwaitsRestore(infra) {
		t.Error("one that takes another's place does not wait")
	}
	infra.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	if AwaitsRestore(infra) {
		t.Error("one that is deleted waits")
	}
	infra.DeletionTimestamp = nil
	infra.Annotations[infrav1.RestoredAtAnnotation] = noon.Format(time.RFC3339)
	if ClusterUID(infra) != "old" || AwaitsRestore(infra) {
		t.Error("it still waits, or is another one now")
	}
}
