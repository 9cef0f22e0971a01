package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// bootstrapKey is where Cluster API keeps bootstrap data in its Secret, formatKey what the data is.
	bootstrapKey = "value"
	formatKey    = "format"
	// eventLimit is how many of MAAS's last events about a machine that failed are told.
	eventLimit = 5
)

// mark writes on the allocation whose it is, for people and for the sweep, over the marks of an older one: MAAS clears them at the end
// of a release only, and a machine that was marked as broken and fixed keeps them.
func (r *Reconciler) mark(ctx context.Context, s *scope) (ctrl.Result, error) {
	m := s.observed
	if m == nil || s.lost || m.Annotations[maas.AnnotationMachineUID] == s.uid() || s.stage() == lifecycle.Leaving {
		return phase.Done()
	}
	if m.Status != maas.StatusAllocated && m.Status != maas.StatusDeploying && m.Status != maas.StatusDeployed {
		return phase.Done()
	}
	if m.Owner == "" {
		return phase.Done()
	}
	marks := map[string]string{
		maas.AnnotationMachineUID: s.uid(),
		maas.AnnotationMachine:    s.owner.Name,
		maas.AnnotationNamespace:  s.machine.Namespace,
		maas.AnnotationCluster:    s.cluster.Name,
		// An older allocation may have left its own, which an empty value takes away.
		maas.AnnotationClusterUID: "",
	}
	if s.infra != nil {
		marks[maas.AnnotationClusterUID] = string(s.infra.UID)
	}
	marked, err := s.identity.Client.SetWorkloadAnnotations(ctx, m.SystemID, marks)
	if err != nil {
		s.identity.Inventory.Forget(m.SystemID)
		return r.problem(ctx, s, err)
	}
	r.take(s, marked)
	return phase.Done()
}

func (r *Reconciler) take(s *scope, m *maas.Machine) {
	s.identity.Inventory.Store(m)
	s.observed = m
}

// advance does what the state of the machine asks for.
func (r *Reconciler) advance(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.stage() == lifecycle.Leaving {
		return r.retry(ctx, s)
	}
	outcome := s.judge(s.stage(), s.observed)
	if late := r.overdue(s, outcome); late != "" {
		outcome = lifecycle.Outcome{Verdict: lifecycle.Retry, Reason: ReasonDeployTimedOut, Message: late}
	}
	s.findings.outcome = outcome
	switch outcome.Verdict {
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

// judge says what the state of a machine means. Of a machine that another MAAS user has, there is no state to be seen.
func (s *scope) judge(stage lifecycle.Stage, m *maas.Machine) lifecycle.Outcome {
	switch {
	case m == nil && s.foreign:
		return lifecycle.Foreign(stage, s.systemID())
	case m != nil && s.lost:
		return lifecycle.TakenOver(stage, m)
	}
	return lifecycle.Judge(stage, m)
}

// overdue says so when MAAS has not ended to install the machine in the time that it has.
func (r *Reconciler) overdue(s *scope, outcome lifecycle.Outcome) string {
	limit := timeout(s.machine.Spec.Timeouts.Deploy, r.Timing.Deploy)
	if outcome.Verdict != lifecycle.Wait || outcome.Reason != lifecycle.ReasonDeploying || r.heldFor(s) <= limit {
		return ""
	}
	return fmt.Sprintf("%s for more than %s", lifecycle.Describe(s.observed), limit)
}

// heldFor is how long the MaasMachine has had its machine. It counts from the allocation, so it must be written down that there
// is one; of a machine that was installed once, nobody asks.
func (r *Reconciler) heldFor(s *scope) time.Duration {
	if s.provisioned() || !condition.IsTrue(s.machine.Status.Conditions, ConditionAllocated) {
		return 0
	}
	return r.Clock.Since(s.since(ConditionAllocated))
}

// deploy asks MAAS to install the machine with the bootstrap data.
func (r *Reconciler) deploy(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.observed.Locked {
		return r.stop(s, ReasonLocked, fmt.Sprintf("machine %s (%s) is locked: unlock it in MAAS", s.observed.Hostname, s.observed.SystemID))
	}
	data, err := r.bootstrap(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if data == nil {
		return r.waitForBootstrap(s)
	}
	if placed, result, err := r.place(ctx, s); !placed {
		return result, err
	}
	m, err := s.identity.Client.DeployMachine(ctx, s.observed.SystemID, maas.DeployRequest{
		DistroSeries: s.machine.Spec.Image,
		UserData:     data[bootstrapKey],
		Ephemeral:    s.machine.Spec.DeployInMemory,
		Comment:      fmt.Sprintf("for MaasMachine %s/%s", s.machine.Namespace, s.machine.Name),
	})
	if err != nil {
		return r.notDeployed(ctx, s, err)
	}
	r.take(s, m)
	s.findings.outcome = lifecycle.Judge(lifecycle.Installing, m)
	r.normal(s, lifecycle.ReasonDeploying, fmt.Sprintf("deploying %s on machine %s (%s)", s.machine.Spec.Image, m.Hostname, m.SystemID))
	return ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}, nil
}

func (r *Reconciler) stop(s *scope, reason, message string) (ctrl.Result, error) {
	s.findings.problem = &Problem{reason, message}
	return ctrl.Result{RequeueAfter: jitter(r.Timing.Problem)}, phase.ErrStop
}

// notDeployed tells a wrong image, which no other machine mends, from a machine that can't be deployed, which another one does.
func (r *Reconciler) notDeployed(ctx context.Context, s *scope, err error) (ctrl.Result, error) {
	s.identity.Inventory.Forget(s.observed.SystemID)
	switch {
	case maas.FieldMessages(err, "distro_series") != nil:
		return r.stop(s, ReasonImageNotFound, err.Error())
	case maas.FieldMessages(err, "network") != nil, maas.FieldMessages(err, "storage") != nil:
		return r.giveUp(ctx, s, lifecycle.Outcome{Verdict: lifecycle.Retry, Reason: ReasonNotDeployable, Message: err.Error()})
	case maas.IsUnavailable(err) && r.heldFor(s) > timeout(s.machine.Spec.Timeouts.Allocate, r.Timing.Allocate):
		// MAAS answers, and has failed with this machine for long: its power, most likely.
		return r.giveUp(ctx, s, lifecycle.Outcome{Verdict: lifecycle.Retry, Reason: ReasonNotDeployable, Message: err.Error()})
	case maas.IsConflict(err):
		// Its state is not what was seen: look again.
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return r.problem(ctx, s, err)
}

// bootstrap reads the Secret with the bootstrap data, once in a pass; it is nil while there is no data. It is not cached: the
// data of one machine is needed once.
func (r *Reconciler) bootstrap(ctx context.Context, s *scope) (map[string][]byte, error) {
	name := s.bootstrapSecret()
	if name == "" || s.bootstrapData != nil {
		return s.bootstrapData, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.machine.Namespace, Name: name}
	if err := r.Reader.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s with the bootstrap data: %w", key, err)
	}
	if _, ok := secret.Data[bootstrapKey]; ok {
		s.bootstrapData = secret.Data
	}
	return s.bootstrapData, nil
}

func (r *Reconciler) waitForBootstrap(s *scope) (ctrl.Result, error) {
	return r.stop(s, ReasonWaitingForBootstrapData, fmt.Sprintf("waiting for key %q of Secret %s with the bootstrap data", bootstrapKey, s.bootstrapSecret()))
}

// powerOn switches on a machine that is certainly off, and not more often than it takes one to boot.
func (r *Reconciler) powerOn(ctx context.Context, s *scope) (ctrl.Result, error) {
	again := ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}
	if !r.powered.due(s.observed.SystemID, r.Clock.Now()) {
		return again, nil
	}
	m, err := s.identity.Client.PowerOnMachine(ctx, s.observed.SystemID, "it is to run as a node")
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

// giveUp writes down that the machine failed, once, and starts to give it back unless it was the last try.
func (r *Reconciler) giveUp(ctx context.Context, s *scope, outcome lifecycle.Outcome) (ctrl.Result, error) {
	failures := failuresOf(s.machine)
	last := len(failures)+1 >= r.Attempts
	if err := r.setAside(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if last {
		outcome.Verdict, outcome.Reason = lifecycle.Failed, ReasonAttemptsExhausted
		outcome.Message = fmt.Sprintf("deployments failed on %d machines, no other one is tried; the last: %s", len(failures)+1, r.withEvents(ctx, s, outcome.Message))
		s.findings.outcome = outcome
		return ctrl.Result{RequeueAfter: jitter(r.Timing.Settled)}, nil
	}
	words := r.withEvents(ctx, s, outcome.Message)
	failures = append(failures, failure{SystemID: s.systemID(), Hostname: s.observed.Hostname, At: r.Clock.Now().UTC(), Reason: outcome.Reason, Words: words})
	var encodeErr error
	if err := upsert.Patch(ctx, r.Client, s.machine, func() { encodeErr = setFailures(s.machine, failures) }); err != nil {
		return ctrl.Result{}, err
	}
	if encodeErr != nil {
		return ctrl.Result{}, encodeErr
	}
	r.warn(s, outcome.Reason, fmt.Sprintf("%s; another machine is tried (%d of %d)", words, len(failures)+1, r.Attempts))
	s.findings.outcome.Reason, s.findings.outcome.Message = outcome.Reason, words
	return r.retry(ctx, s)
}

// withEvents adds MAAS's last events about the machine to a message; without them the message must do.
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

// retry gives the failed machine back, waits until that is done, and makes room for another one.
func (r *Reconciler) retry(ctx context.Context, s *scope) (ctrl.Result, error) {
	left, err := r.leave(ctx, s, s.observed)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	if left.Verdict != lifecycle.Gone {
		s.findings.outcome = lifecycle.Outcome{Verdict: lifecycle.Wait, Reason: s.lastFailure().Reason,
			Message: fmt.Sprintf("%s; before another machine is tried, %s", s.lastFailure().Words, left.Message)}
		return ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}, nil
	}
	if result, err := r.free(ctx, s); err != nil {
		return result, err
	}
	failures := failuresOf(s.machine)
	for i := range failures {
		failures[i].Released = true
	}
	var encodeErr error
	err = upsert.Patch(ctx, r.Client, s.machine, func() {
		s.machine.Spec.ProviderID, s.machine.Spec.SystemID = nil, nil
		encodeErr = errors.Join(setFailures(s.machine, failures), setAddress(s.machine, address{IP: addressOf(s.machine).IP}))
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	s.observed = nil
	last := s.lastFailure()
	s.findings.problem = &Problem{last.Reason, fmt.Sprintf("%s; another machine is tried", last.Words)}
	return ctrl.Result{RequeueAfter: time.Second}, encodeErr
}

func (s *scope) lastFailure() failure {
	failures := failuresOf(s.machine)
	if len(failures) == 0 {
		return failure{Reason: lifecycle.ReasonDeployFailed, Words: "the deployment failed"}
	}
	return failures[len(failures)-1]
}
