// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// mark writes the ownership annotations to the machine in MAAS. Administrators, the sweep and a restored cluster read
// them. It overwrites the annotations of an earlier allocation. MAAS clears them only at the end of a release, and a
// machine that was marked broken and then fixed still has them.
func (r *Reconciler) mark(ctx context.Context, s *scope) (ctrl.Result, error) {
	m := s.observed
	if m == nil || s.lost || s.stage() == lifecycle.Leaving || s.gaveUp() || s.marked(m) {
		return phase.Done()
	}
	if m.Status != maas.StatusAllocated && m.Status != maas.StatusDeploying && m.Status != maas.StatusDeployed {
		return phase.Done()
	}
	if m.Owner == "" {
		return phase.Done()
	}
	if result, waits := r.pausing(s); waits {
		return result, phase.ErrStop
	}
	marked, err := s.identity.Client.SetWorkloadAnnotations(ctx, m.SystemID, s.marks())
	if err != nil {
		s.identity.Inventory.Forget(m.SystemID)
		return r.heldUp(ctx, s, err)
	}
	r.take(s, marked)
	return phase.Done()
}

// marks returns the desired ownership annotations. An empty value removes an annotation that an earlier allocation may
// have left.
func (s *scope) marks() map[string]string {
	return map[string]string{
		maas.AnnotationMachineUID: s.uid(),
		maas.AnnotationMachine:    s.owner.Name,
		maas.AnnotationNamespace:  s.machine.Namespace,
		maas.AnnotationCluster:    s.cluster.Name,
		maas.AnnotationClusterUID: s.allocation().ClusterUID,
		maas.AnnotationPool:       pool(s.machine),
		maas.AnnotationErase:      s.eraseMode(),
	}
}

// marked reports whether the machine has all desired ownership annotations. An annotation missing on a machine with
// older annotations counts as unset, so mark adds it.
func (s *scope) marked(m *maas.Machine) bool {
	for key, value := range s.marks() {
		stored, has := m.Annotations[key]
		// Version 0.1.0 has not marked the machines that it deployed with an erase mode. An upgrade must not write to each.
		if key == maas.AnnotationErase && !has && m.Status == maas.StatusDeployed {
			continue
		}
		if stored != value {
			return false
		}
	}
	return true
}

func (r *Reconciler) take(s *scope, m *maas.Machine) {
	s.identity.Inventory.Store(m)
	s.observed = m
}

// advance does the next step for the state of the machine.
func (r *Reconciler) advance(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.stage() == lifecycle.Leaving {
		return r.retry(ctx, s)
	}
	outcome := r.inTime(s, s.evaluate(s.stage(), s.observed))
	if s.gaveUp() && outcome.Action != lifecycle.Running && outcome.Action != lifecycle.Lost {
		return r.exhausted(ctx, s, outcome)
	}
	s.findings.outcome = outcome
	switch outcome.Action {
	case lifecycle.Deploy:
		return r.deploy(ctx, s)
	case lifecycle.Running:
		s.findings.ready = true
		if err := r.wellAgain(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: jitter(r.Timing.Settled)}, nil
	case lifecycle.PowerOn:
		return r.powerOn(ctx, s)
	case lifecycle.Retry:
		return r.giveUp(ctx, s, outcome)
	case lifecycle.Failed, lifecycle.Lost:
		return ctrl.Result{RequeueAfter: jitter(r.Timing.Settled)}, nil
	}
	return ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}, nil
}

// evaluate returns the outcome for the state of a machine. The state of a machine that is allocated to another MAAS
// user cannot be read.
func (s *scope) evaluate(stage lifecycle.Stage, m *maas.Machine) lifecycle.Outcome {
	switch {
	case m == nil && s.foreign:
		return lifecycle.Foreign(stage, s.systemID())
	case m != nil && s.lost:
		return lifecycle.TakenOver(stage, m)
	case m != nil && stage == lifecycle.Leaving && s.composed(m):
		return lifecycle.Discard(m)
	}
	return lifecycle.Evaluate(stage, m)
}

// inTime replaces the outcome if the state has lasted longer than its limit.
func (r *Reconciler) inTime(s *scope, outcome lifecycle.Outcome) lifecycle.Outcome {
	if outcome.Limit == lifecycle.NoLimit {
		return outcome
	}
	limit, lasted := r.limit(s, outcome.Limit), r.lasted(s)
	if outcome.Action == lifecycle.PowerOn {
		lasted = min(lasted, r.notRunning(s))
	}
	if lasted > limit {
		return outcome.Overdue(limit)
	}
	return outcome
}

func (r *Reconciler) limit(s *scope, limit lifecycle.Limit) time.Duration {
	switch limit {
	case lifecycle.DeployLimit:
		return timeout(s.machine.Spec.Timeouts.Deploy, r.Timing.Deploy)
	case lifecycle.BootLimit:
		return timeout(s.machine.Spec.Timeouts.Boot, r.Timing.Boot)
	case lifecycle.ReleaseLimit:
		return r.Timing.Release
	case lifecycle.EraseLimit:
		return r.Timing.Erase
	}
	return r.Timing.Maintenance
}

// lasted returns the time since the machine entered its state. The start time is in the status, so it survives a
// restart.
func (r *Reconciler) lasted(s *scope) time.Duration {
	if s.observed == nil || s.seen.state != lifecycle.StateName(s.observed) || s.seen.since.IsZero() {
		return 0
	}
	return r.Clock.Since(s.seen.since)
}

// notRunning returns how long the machine has been known not to run.
func (r *Reconciler) notRunning(s *scope) time.Duration {
	if condition.IsTrue(s.machine.Status.Conditions, ConditionDeployed) {
		return 0
	}
	return r.Clock.Since(s.since(ConditionDeployed))
}

// powerOn powers on a machine that MAAS reports as off. It retries only after the time that a boot takes. MAAS's record
// may be minutes old, and powering on a running machine can power-cycle it, so the power is queried first.
func (r *Reconciler) powerOn(ctx context.Context, s *scope) (ctrl.Result, error) {
	again := ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}
	if !r.powered.due(s.observed.SystemID, r.Clock.Now()) {
		return again, nil
	}
	state, err := s.identity.Client.QueryPowerState(ctx, s.observed.SystemID)
	if err != nil || state != maas.PowerOff {
		s.identity.Inventory.Forget(s.observed.SystemID)
	}
	switch {
	case err != nil:
		return r.problem(ctx, s, err)
	case state != maas.PowerOff:
		return again, nil
	}
	m, err := s.identity.Client.PowerOnMachine(ctx, s.observed.SystemID, "it is in use as a node")
	if err != nil {
		s.identity.Inventory.Forget(s.observed.SystemID)
		return r.problem(ctx, s, err)
	}
	r.warn(s, lifecycle.ReasonPoweredOff, fmt.Sprintf("machine %s (%s) was switched off; switched it on", s.observed.Hostname, s.observed.SystemID))
	if m.SystemID != "" {
		s.identity.Inventory.Store(m)
	}
	return again, nil
}
