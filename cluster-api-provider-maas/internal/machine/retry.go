// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// eventLimit is the number of the latest MAAS events that are reported for a failed machine.
const eventLimit = 5

// giveUp records once that the machine failed. It starts to release the machine unless this was the last attempt.
func (r *Reconciler) giveUp(ctx context.Context, s *scope, outcome lifecycle.Outcome) (ctrl.Result, error) {
	failures := failuresOf(s.machine)
	if err := r.setAside(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if len(failures)+1 >= r.Attempts {
		return r.exhausted(ctx, s, outcome)
	}
	words := r.withEvents(ctx, s, outcome.Message)
	r.refusals.end(s.systemID())
	failures = append(failures, failure{SystemID: s.systemID(), Hostname: s.observed.Hostname, At: r.Clock.Now().UTC(), Reason: outcome.Reason, Words: words, Host: s.host()})
	if err := r.write(ctx, s, func() error { return setFailures(s.machine, failures) }); err != nil {
		return ctrl.Result{}, err
	}
	r.warn(s, outcome.Reason, fmt.Sprintf("%s; another machine is tried (%d of %d)", words, len(failures)+1, r.Attempts))
	s.findings.outcome.Reason, s.findings.outcome.Message = outcome.Reason, words
	return r.retry(ctx, s)
}

// exhausted sets a terminal outcome. The last machine stays as it is, so that an administrator can inspect it. Its MAAS
// events are read once.
func (r *Reconciler) exhausted(ctx context.Context, s *scope, outcome lifecycle.Outcome) (ctrl.Result, error) {
	message := fmt.Sprintf("deployments failed on %s, and no other machine is tried; the last failure: ", condition.Count(len(failuresOf(s.machine))+1, "machine"))
	if s.gaveUp() {
		message = meta.FindStatusCondition(s.machine.Status.Conditions, ConditionDeployed).Message
	} else {
		message += r.withEvents(ctx, s, outcome.Message)
	}
	s.findings.problem = nil
	s.findings.outcome = lifecycle.Outcome{Action: lifecycle.Failed, Reason: ReasonAttemptsExhausted, Message: message}
	return ctrl.Result{RequeueAfter: jitter(r.Timing.Settled)}, nil
}

// gaveUp reports whether the allocated machine was the last attempt.
func (s *scope) gaveUp() bool {
	c := meta.FindStatusCondition(s.machine.Status.Conditions, ConditionDeployed)
	return c != nil && c.Reason == ReasonAttemptsExhausted && s.systemID() != ""
}

// withEvents appends the latest MAAS events of the machine to a message. If they cannot be read, it returns the message
// unchanged.
func (r *Reconciler) withEvents(ctx context.Context, s *scope, message string) string {
	page, err := s.identity.Client.ListEvents(ctx, maas.EventFilter{SystemIDs: []string{s.systemID()}, Level: "WARNING", Limit: eventLimit})
	if err != nil || len(page.Events) == 0 {
		return message
	}
	var words []string
	for _, e := range page.Events {
		words = append(words, strings.TrimSuffix(strings.TrimSpace(e.Type+": "+e.Description), ":"))
	}
	return fmt.Sprintf("%s; last events in MAAS: %s", message, strings.Join(words, " | "))
}

// retry releases the failed machine. Another machine is tried when MAAS has released it, or when MAAS cannot release
// it: a machine with unresponsive power must not block the MaasMachine. The release then continues in the background.
func (r *Reconciler) retry(ctx context.Context, s *scope) (ctrl.Result, error) {
	left, err := r.leave(ctx, s, s.observed)
	last := s.lastFailure()
	switch {
	case err != nil && !refused(err):
		return r.problem(ctx, s, err)
	case err != nil:
		left.Message = err.Error()
	case left.Action == lifecycle.Gone:
		if result, err := r.free(ctx, s); err != nil && !errors.Is(err, phase.ErrStop) {
			return result, err
		} else if err == nil {
			r.normal(s, lifecycle.ReasonReleased, left.Message)
			return r.vacate(ctx, s, true)
		}
		left.Message = s.findings.problem.Message
	case left.Action == lifecycle.Wait && r.Clock.Since(last.At) < r.Timing.Release:
		s.findings.outcome = lifecycle.Outcome{Action: lifecycle.Wait, Reason: last.Reason,
			Message: fmt.Sprintf("%s; before another machine is tried, %s", last.Words, left.Message)}
		return ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}, nil
	}
	r.warn(s, lifecycle.ReasonReleaseFailed, fmt.Sprintf("%s; the release continues in the background while another machine is tried", left.Message))
	return r.vacate(ctx, s, false)
}

// vacate removes the failed machine from spec, so that another one can be allocated. A machine that is not released yet
// stays in the list of pending releases.
func (r *Reconciler) vacate(ctx context.Context, s *scope, released bool) (ctrl.Result, error) {
	last, failures, own := s.lastFailure(), failuresOf(s.machine), addressOf(s.machine)
	next := address{IP: own.IP}
	for i := range failures {
		if f := &failures[i]; f.SystemID == s.systemID() && !f.Released {
			f.Released = released
			if !released && own.SystemID == f.SystemID {
				// MAAS assigns the address to the failed machine until its release has unassigned it.
				f.Address, next = &own, address{}
			}
		}
	}
	err := r.write(ctx, s, func() error {
		s.machine.Spec.ProviderID, s.machine.Spec.SystemID = nil, nil
		delete(s.machine.Annotations, lxd.PlacementAnnotation)
		return errors.Join(setFailures(s.machine, failures), setAddress(s.machine, next))
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	s.observed, s.subnet = nil, nil
	r.places.Forget(s.uid())
	s.findings.problem = &Problem{last.Reason, fmt.Sprintf("%s; another machine is tried", last.Words)}
	return ctrl.Result{RequeueAfter: time.Second}, nil
}

func (s *scope) lastFailure() failure {
	failures := failuresOf(s.machine)
	if len(failures) == 0 {
		return failure{Reason: lifecycle.ReasonDeployFailed, Words: "the deployment failed"}
	}
	return failures[len(failures)-1]
}
