// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// deletion returns the phases that release the machine. The finalizer is removed when nothing of the MaasMachine is
// left in MAAS. If no machine was ever requested from MAAS, there are no phases, so MAAS does not have to be reachable.
func (r *Reconciler) deletion(s *scope) []phase.Phase[*scope] {
	if s.systemID() == "" && attemptedAt(s.machine).IsZero() && len(s.outstanding()) == 0 && lxd.PlacementOf(s.machine) == nil {
		return nil
	}
	return []phase.Phase[*scope]{
		{Name: "credentials", Critical: true, Run: r.connect},
		{Name: "failed machines", Run: r.background},
		{Name: "machine in MAAS", Critical: true, Run: r.observe},
		{Name: "ownership", Critical: true, Run: r.own},
		{Name: "delegating the release of failed machines", Critical: true, Run: r.handOverOutstanding},
		{Name: "release", Critical: true, Run: r.giveBack},
		{Name: "virtual machine", Critical: true, Run: r.discardUnallocated},
		{Name: "leftovers", Critical: true, Run: r.leftovers},
	}
}

// giveBack releases the machine in spec. It waits until MAAS has released it, or until the release is overdue.
func (r *Reconciler) giveBack(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.systemID() == "" || s.handedOver(s.systemID()) {
		return phase.Done()
	}
	if already, err := r.keepsAlready(ctx, s); already || err != nil {
		return ctrl.Result{}, err
	}
	if err := r.intend(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	left, err := r.leave(ctx, s, s.observed)
	if err != nil && !refused(err) && !maas.IsForbidden(err) {
		return r.problem(ctx, s, err)
	}
	if err != nil {
		p := ProblemOf(err)
		left = lifecycle.Outcome{Action: lifecycle.Stuck, Reason: p.Reason, Message: p.Message}
	}
	s.findings.outcome = left
	switch {
	case left.Action == lifecycle.Gone:
		if result, err := r.free(ctx, s); err != nil {
			return result, err
		}
		return r.keep(ctx, s)
	case r.overdue(s, left):
		return ctrl.Result{}, r.handOver(ctx, s, left)
	case err != nil:
		return r.problem(ctx, s, err)
	}
	return ctrl.Result{RequeueAfter: r.leaveEvery(s, left)}, phase.ErrStop
}

// leaveEvery returns the interval at which a release is checked. It is short if the machine will be allocated again.
func (r *Reconciler) leaveEvery(s *scope, left lifecycle.Outcome) time.Duration {
	if s.kept() && left.Action == lifecycle.Wait {
		return min(keepEvery, r.Timing.Poll)
	}
	return jitter(r.pollEvery(left))
}

// pollEvery returns the interval at which a release is checked. It is long if only time or an administrator can help.
func (r *Reconciler) pollEvery(left lifecycle.Outcome) time.Duration {
	if left.Action == lifecycle.Stuck || left.Action == lifecycle.Blocked {
		return r.Timing.Settled
	}
	return r.Timing.Poll
}

// leave does the next step of a release, and returns its progress.
func (r *Reconciler) leave(ctx context.Context, s *scope, m *maas.Machine) (lifecycle.Outcome, error) {
	left := r.inTime(s, s.evaluate(lifecycle.Leaving, m))
	if left.Action != lifecycle.Release && left.Action != lifecycle.Stuck {
		return left, nil
	}
	// A release clears the key when it starts, so a machine that is stuck in a release has none. Repeating the release is
	// safe.
	if left.Action == lifecycle.Stuck && !r.released.due(m.SystemID, r.Clock.Now()) {
		return left, nil
	}
	if p, pause := r.unreleased.standing(m.SystemID, r.Clock.Now()); pause > 0 {
		return lifecycle.Outcome{Action: lifecycle.Stuck, Reason: p.Reason, Message: p.Message}, nil
	}
	if left.Action == lifecycle.Release {
		if ours, err := r.ours(ctx, s, m); err != nil {
			return left, err
		} else if !ours {
			return lifecycle.TakenOver(lifecycle.Leaving, m), nil
		}
	}
	if err := r.handBack(ctx, s, m); err != nil {
		return left, err
	}
	if left.Action == lifecycle.Stuck && s.observed != nil {
		return left, nil
	}
	return s.evaluate(lifecycle.Leaving, s.observed), nil
}

// handBack releases the machine, or deletes a virtual machine that was composed for this MaasMachine.
func (r *Reconciler) handBack(ctx context.Context, s *scope, m *maas.Machine) error {
	if s.composed(m) {
		return r.discard(ctx, s, m)
	}
	return r.release(ctx, s, m, fmt.Sprintf("MaasMachine %s/%s no longer needs it", s.machine.Namespace, s.machine.Name))
}

// release asks MAAS to release a machine.
func (r *Reconciler) release(ctx context.Context, s *scope, m *maas.Machine, why string) error {
	released, err := s.identity.Client.ReleaseMachine(ctx, m.SystemID, s.releaseRequest(m, why))
	if maas.IsNotFound(err) {
		s.identity.Inventory.Forget(m.SystemID)
		s.observed = nil
		return nil
	}
	if err != nil {
		s.identity.Inventory.Forget(m.SystemID)
		if refused(err) {
			r.unreleased.add(m.SystemID, ProblemOf(err), r.Clock.Now())
		}
		return err
	}
	r.refusals.end(m.SystemID)
	r.unreleased.end(m.SystemID)
	r.take(s, released)
	if m.Status != maas.StatusReleasingFailed && m.Status != maas.StatusFailedDiskErasing {
		// The event for the completed release is emitted when MAAS reports it.
		r.normal(s, lifecycle.ReasonReleasing, fmt.Sprintf("MAAS is releasing machine %s (%s): %s", m.Hostname, m.SystemID, why))
	}
	return nil
}

// leftovers releases other machines that are allocated with the key of this MaasMachine. It also waits while the
// outcome of an allocation is unknown.
func (r *Reconciler) leftovers(ctx context.Context, s *scope) (ctrl.Result, error) {
	held, err := r.holding(ctx, s)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	for i := range held {
		if err := r.handBack(ctx, s, &held[i]); err != nil {
			return r.problem(ctx, s, err)
		}
	}
	if len(held) > 0 {
		s.findings.problem = &Problem{lifecycle.ReasonReleasing, fmt.Sprintf("%s: it is being released", lifecycle.Describe(&held[0]))}
		return ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}, phase.ErrStop
	}
	if left := r.doubtLeft(s); left > 0 {
		s.findings.problem = &Problem{ReasonAllocationUncertain, "MAAS was asked for a machine and its answer was not received; waiting to see whether one turns up"}
		return ctrl.Result{RequeueAfter: min(left, jitter(r.Timing.Poll/2))}, phase.ErrStop
	}
	if left := s.findings.outstanding; len(left) > 0 {
		s.findings.problem = &Problem{left[0].Reason, left[0].Message}
		return ctrl.Result{RequeueAfter: jitter(r.pollEvery(left[0].Outcome))}, phase.ErrStop
	}
	if s.findings.outcome.Action == lifecycle.Gone {
		r.normal(s, lifecycle.ReasonReleased, s.findings.outcome.Message)
	}
	return phase.Done()
}
