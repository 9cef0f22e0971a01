// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
)

// outstanding returns the pending releases: machines on which a deployment failed, which were replaced, and which MAAS
// has not released. They are recorded on the MaasMachine before the replacement, and its finalizer waits for them.
func (s *scope) outstanding() []failure {
	return slices.DeleteFunc(failuresOf(s.machine), func(f failure) bool { return f.Released || f.SystemID == s.systemID() })
}

// GivesBack reports whether a MaasMachine is releasing a machine on which a deployment failed.
func GivesBack(m *infrav1.MaasMachine, systemID string) bool {
	return slices.ContainsFunc(failuresOf(m), func(f failure) bool { return f.SystemID == systemID && !f.Released })
}

// isOutstanding reports whether the release of a machine is pending. Such a machine must not be allocated again, for
// any MaasMachine.
func (s *scope) isOutstanding(systemID string) bool {
	return slices.ContainsFunc(s.outstanding(), func(f failure) bool { return f.SystemID == systemID })
}

// unreleased holds the progress of a pending release, and the scope of the MaasMachine while it still had the
// machine.
type unreleased struct {
	lifecycle.Outcome
	former *scope
}

// background continues the pending releases. It never blocks the other phases.
func (r *Reconciler) background(ctx context.Context, s *scope) (ctrl.Result, error) {
	var result ctrl.Result
	back := map[string]bool{}
	for _, f := range s.outstanding() {
		former := s.formerly(f)
		left := r.giveBackFailed(ctx, former)
		if ctx.Err() != nil {
			return ctrl.Result{}, ctx.Err()
		}
		if left.Action == lifecycle.Gone {
			back[f.SystemID] = true
			r.unreleased.end(f.SystemID)
			r.normal(s, lifecycle.ReasonReleased, left.Message)
			continue
		}
		s.findings.outstanding = append(s.findings.outstanding, unreleased{left, former})
		result = phase.Sooner(result, ctrl.Result{RequeueAfter: jitter(r.pollEvery(left))})
	}
	if len(back) == 0 {
		return result, nil
	}
	return result, r.markReleased(ctx, s, back)
}

func (r *Reconciler) markReleased(ctx context.Context, s *scope, back map[string]bool) error {
	failures := failuresOf(s.machine)
	for i := range failures {
		if back[failures[i].SystemID] {
			failures[i].Released, failures[i].Address = true, nil
		}
	}
	return r.write(ctx, s, func() error { return setFailures(s.machine, failures) })
}

// formerly returns a scope of the MaasMachine as it was when it had the failed machine. It is never written.
func (s *scope) formerly(f failure) *scope {
	m := s.machine.DeepCopy()
	m.Spec.SystemID, m.Spec.ProviderID = &f.SystemID, nil
	former := &scope{machine: m, owner: s.owner, cluster: s.cluster, infra: s.infra, identity: s.identity, user: s.user}
	var a address
	if f.Address != nil {
		a = *f.Address
	}
	if err := setAddress(m, a); err != nil {
		former.findings.problem = &Problem{ReasonError, err.Error()}
	}
	return former
}

// giveBackFailed does the next step of a release, and returns its progress. An error becomes a Stuck outcome.
func (r *Reconciler) giveBackFailed(ctx context.Context, former *scope) lifecycle.Outcome {
	_, err := r.observe(ctx, former)
	var left lifecycle.Outcome
	if err == nil {
		left, err = r.leave(ctx, former, former.observed)
	}
	if err == nil && left.Action == lifecycle.Gone {
		_, err = r.free(ctx, former)
	}
	if err == nil {
		return left
	}
	p := ProblemOf(err)
	if former.findings.problem != nil {
		p = *former.findings.problem
	}
	return lifecycle.Outcome{Action: lifecycle.Stuck, Reason: p.Reason, Message: p.Message}
}

// outstandingCondition reports the failed machines that MAAS has not released; nil when there never was one.
func (s *scope) outstandingCondition() *metav1.Condition {
	if len(s.outstanding()) == 0 {
		if !slices.ContainsFunc(s.machine.Status.Conditions, func(c metav1.Condition) bool { return c.Type == ConditionOutstanding }) {
			return nil
		}
		c := condition.True(ConditionOutstanding, lifecycle.ReasonReleased, "")
		return &c
	}
	reason, words := lifecycle.ReasonReleasing, []string{}
	for _, left := range s.findings.outstanding {
		reason = left.Reason
		words = append(words, left.Message)
	}
	c := condition.False(ConditionOutstanding, reason, fmt.Sprintf("a deployment failed on it, and MAAS has not released it: %s", strings.Join(words, " | ")))
	return &c
}
