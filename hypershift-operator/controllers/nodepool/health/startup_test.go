// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/testenv"
)

// TestPatience checks that a machine that got its capacity late has the full startup timeout from that moment.
func TestPatience(t *testing.T) {
	const startup = 225 * time.Minute // The startup timeout of the fixture's pool.
	for name, tc := range map[string]struct {
		// age is the machine's age, and got the time from its creation until it got its capacity; -1 for not yet.
		age, got time.Duration
		reason   string
		node     string
		patient  bool
		left     time.Duration
	}{
		"When a machine is new, it should check again after the short wait":                                     {age: 0, got: -1, left: shortWait + time.Second},
		"When a machine has waited for a minute, it should check again after the rest of the short wait":        {age: time.Minute, got: -1, left: 4*time.Minute + time.Second},
		"When a machine has waited for exactly the short wait, the startup clock should run for another second": {age: shortWait, got: -1, left: time.Second},
		"When a machine has waited longer than the short wait, it should stop the startup clock":                {age: shortWait + time.Second, got: -1, patient: true},
		"When a machine got capacity soon, the startup clock should run from its creation":                      {age: time.Hour, got: time.Minute},
		"When a machine got capacity just in time, the startup clock should run from its creation":              {age: time.Hour, got: shortWait},
		"When a machine got capacity late, it should stop the startup clock for the full startup timeout":       {age: 11 * time.Hour, got: 10 * time.Hour, patient: true, left: startup - time.Hour},
		"When a late machine is just within its startup timeout, the startup clock should be stopped":           {age: time.Hour + startup - 1, got: time.Hour, patient: true, left: 1},
		"When the startup timeout of a late machine has just ended, the startup clock should run":               {age: time.Hour + startup, got: time.Hour},
		"When the startup timeout of a late machine ended a while ago, it should not check again":               {age: time.Hour + startup + time.Minute, got: time.Hour},
		"When a machine without capacity has failed, the startup clock should run":                              {age: time.Hour, got: -1, reason: "DeployAttemptsExhausted"},
		"When a machine with late capacity has failed, the startup clock should run":                            {age: 2 * time.Hour, got: time.Hour, reason: "DeployAttemptsExhausted"},
		"When a machine has its node, it should allow remediation":                                              {age: 2 * time.Hour, got: time.Hour, node: "a"},
		"When a machine has its node but no start time, it should allow remediation":                            {age: 2 * time.Hour, got: -1, node: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), scopetest.New()
			s.Platform, _ = fixture.Platforms(nil).For(hyperv1.MAASPlatform)
			machine, start := scopetest.Machine("a", "wanted"), platform.MachineStart{Reason: tc.reason}
			machine.CreationTimestamp, machine.Status.NodeRef.Name = metav1.NewTime(s.Now.Add(-tc.age)), tc.node
			if tc.got >= 0 {
				start.Begun = machine.CreationTimestamp.Add(tc.got)
			}
			patient, left := Check{Scope: s}.patience(machine, start)
			g.Expect(patient).To(Equal(tc.patient))
			g.Expect(left).To(Equal(tc.left))
		})
	}
}

// TestNodeStartupOfPool checks that an annotation takes precedence over the derived value.
func TestNodeStartupOfPool(t *testing.T) {
	maas, _ := fixture.Platforms(nil).For(hyperv1.MAASPlatform)
	for name, tc := range map[string]struct {
		annotation string
		platform   platform.Platform
		want       time.Duration
	}{
		"When there is no annotation, it should derive the timeout from the platform's timeouts": {"", maas, 225 * time.Minute},
		"When an annotation is set, it should use its value":                                     {"90m", maas, 90 * time.Minute},
		"When the annotation is invalid, it should use the derived timeout":                      {"soon", maas, 225 * time.Minute},
		"When the platform has no timeouts, it should use the default of 60 minutes":             {"", none.Platform{}, 60 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := scopetest.New()
			s.Platform = tc.platform
			scope.Annotate(s.Pool, hyperv1.MachineHealthCheckNodeStartupTimeoutAnnotation, tc.annotation)
			NewWithT(t).Expect(Check{Scope: s}.NodeStartup()).To(Equal(tc.want))
		})
	}
}

// TestSetPatience checks that an annotation that a user set is not changed.
func TestSetPatience(t *testing.T) {
	const own, none = patienceValue, "-"
	for name, tc := range map[string]struct {
		before  string
		patient bool
		want    string
		writes  int
	}{
		"When remediation must be skipped, it should add the annotation":          {none, true, own, 1},
		"When the annotation is already set, it should write nothing":             {own, true, own, 0},
		"When remediation is allowed again, it should remove the annotation":      {own, false, none, 1},
		"When there is no annotation and none is needed, it should write nothing": {none, false, none, 0},
		"When a user set the annotation, it should not remove it":                 {"for a while", false, "for a while", 0},
		"When a user set the annotation, it should not overwrite it":              {"", true, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := fleet(t, "a")
			machine := w.machine("a")
			if tc.before != none {
				scope.Annotate(machine, clusterv1.MachineSkipRemediationAnnotation, tc.before)
				w.Expect(w.server.Update(t.Context(), machine)).To(Succeed())
			}
			counted := fixture.NewFaulty(w.server)
			w.Client = counted
			w.Expect(w.setPatience(t.Context(), machine, tc.patient)).To(Succeed())
			w.Expect(counted.Log).To(HaveLen(tc.writes))
			got, annotated := w.machine(s.Machines[0].Name).Annotations[clusterv1.MachineSkipRemediationAnnotation]
			w.Expect(annotated).To(Equal(tc.want != none))
			if annotated {
				w.Expect(got).To(Equal(tc.want))
			}
		})
	}
}

// TestSetFailed checks that a Machine whose node is healthy is not reported as failed.
func TestSetFailed(t *testing.T) {
	exhausted := platform.MachineStart{Reason: "DeployAttemptsExhausted", Message: "on 3 machines"}
	failed := condition.True(failedCondition, exhausted.Reason, exhausted.Message)
	wellNow := condition.False(failedCondition, "NotFailed", "")
	healthy := condition.True(clusterv1.MachineNodeHealthyCondition, "Ready", "")
	ill := condition.False(clusterv1.MachineNodeHealthyCondition, "NotReady", "")
	type conditions = []metav1.Condition
	for name, tc := range map[string]struct {
		before conditions
		start  platform.MachineStart
		want   *metav1.Condition
		writes int
	}{
		"When nothing is wrong, it should write nothing":                                   {nil, platform.MachineStart{}, nil, 0},
		"When the platform reports a failure, it should set the condition with the reason": {nil, exhausted, &failed, 1},
		"When the node is unhealthy too, it should set the condition with the reason":      {conditions{ill}, exhausted, &failed, 1},
		"When the condition is already true, it should write nothing":                      {conditions{failed}, exhausted, &failed, 0},
		"When the node is healthy, it should not set the condition":                        {conditions{healthy}, exhausted, nil, 0},
		"When the node becomes healthy again, it should set the condition to false":        {conditions{healthy, failed}, exhausted, &wellNow, 1},
		"When the platform withdraws the failure, it should set the condition to false":    {conditions{failed}, platform.MachineStart{}, &wellNow, 1},
		"When the condition is already false, it should write nothing":                     {conditions{wellNow}, platform.MachineStart{}, &wellNow, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := fleet(t, "a")
			machine := w.machine("a")
			for _, c := range tc.before {
				meta.SetStatusCondition(&machine.Status.Conditions, c)
			}
			w.Expect(w.server.Status().Update(t.Context(), machine)).To(Succeed())
			machine = w.machine("a")
			counted := fixture.NewFaulty(w.server)
			w.Client = counted
			w.Expect(w.setFailed(t.Context(), machine, tc.start)).To(Succeed())
			w.Expect(counted.Log).To(HaveLen(tc.writes))
			got := w.failed("a")
			if tc.want == nil {
				w.Expect(got).To(BeNil())
				return
			}
			w.Expect(got).NotTo(BeNil())
			w.Expect([]any{got.Status, got.Reason, got.Message}).To(Equal([]any{tc.want.Status, tc.want.Reason, tc.want.Message}))
		})
	}
	t.Run("When the Machine changed since it was read, it should return a conflict error", func(t *testing.T) {
		w, _ := fleet(t, "a")
		old, machine := w.machine("a"), w.machine("a")
		meta.SetStatusCondition(&machine.Status.Conditions, healthy)
		w.Expect(w.server.Status().Update(t.Context(), machine)).To(Succeed())
		w.Expect(apierrors.IsConflict(w.setFailed(t.Context(), old, exhausted))).To(BeTrue())
	})
}

// TestFollowStartups checks that a failed write to one machine does not affect the others.
func TestFollowStartups(t *testing.T) {
	// followed reconciles the machines a, b, and c. Machine a has waited for capacity for a minute, and c for an hour.
	// The provider reports b as failed.
	followed := func(t *testing.T, before func(*checked, *scope.Scope)) (*checked, ctrl.Result, error) {
		t.Helper()
		w, s := fleet(t, "a", "b", "c")
		for i, age := range []time.Duration{time.Minute, time.Hour, time.Hour} {
			s.Machines[i].CreationTimestamp = metav1.NewTime(s.Now.Add(-age))
		}
		gaveUp(&s.Infra["b"].(*infrav1.MaasMachine).Status)
		if before != nil {
			before(w, s)
		}
		result, err := w.FollowStartups(t.Context())
		return w, result, err
	}
	soon := ctrl.Result{RequeueAfter: 4*time.Minute + time.Second}

	t.Run("When machines start, it should update each and requeue for the next check that is due", func(t *testing.T) {
		w, result, err := followed(t, func(_ *checked, s *scope.Scope) {
			s.Machines[2].CreationTimestamp = metav1.NewTime(s.Now.Add(-2 * time.Minute))
		})
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(result).To(Equal(ctrl.Result{RequeueAfter: 3*time.Minute + time.Second}))
		w.Expect(w.failed("b").Reason).To(Equal("DeployAttemptsExhausted"))
		w.Expect(w.skipped("b")).To(BeEmpty())
		w.Expect(w.failed("a")).To(BeNil())
	})
	t.Run("When the platform reports no machine starts, it should not annotate the machines", func(t *testing.T) {
		w, result, err := followed(t, func(_ *checked, s *scope.Scope) { s.Platform = none.Platform{} })
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(result).To(BeZero())
		w.Expect(w.skipped("c")).To(BeEmpty())
	})
	t.Run("When a platform machine is unknown or a Machine is being deleted, it should update the others", func(t *testing.T) {
		w, result, err := followed(t, func(_ *checked, s *scope.Scope) {
			delete(s.Infra, "a")
			scopetest.Leaving(s.Machines[1])
		})
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(result).To(BeZero())
		w.Expect(w.failed("b")).To(BeNil())
		w.Expect(w.skipped("c")).To(Equal(patienceValue))
	})
	for name, tc := range map[string]struct {
		pattern string
		with    error
		fails   bool
	}{
		"When an annotation cannot be patched, it should return an error":         {"patch .*Machine .*/c", testenv.ErrRefused, true},
		"When the failure condition cannot be patched, it should return an error": {"patch status .*Machine .*/b", testenv.ErrRefused, true},
		"When the machine to annotate is gone, it should succeed":                 {"patch .*Machine .*/c", apierrors.NewNotFound(schema.GroupResource{}, "c"), false},
		"When the machine with a failure is gone, it should succeed":              {"patch status .*Machine .*/b", apierrors.NewNotFound(schema.GroupResource{}, "b"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w, result, err := followed(t, func(w *checked, _ *scope.Scope) { w.Client = scopetest.Answering(w.server, tc.pattern, tc.with) })
			w.Expect(result).To(Equal(soon))
			if tc.fails {
				w.Expect(err).To(MatchError(tc.with))
			} else {
				w.Expect(err).NotTo(HaveOccurred())
			}
			w.Expect(w.failed("b") == nil).To(Equal(strings.HasSuffix(tc.pattern, "b")))
			w.Expect(w.skipped("c") == "").To(Equal(strings.HasSuffix(tc.pattern, "c")))
		})
	}
}
