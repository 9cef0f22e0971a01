// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/machinetoken"
	"github.com/openshift/hypershift/support/phase"
)

const (
	// bootstrapKey is the key of the bootstrap data in the Secret of Cluster API. formatKey is the key of its format.
	bootstrapKey = "value"
	formatKey    = "format"
)

// deploy asks MAAS to install the machine with the bootstrap data.
func (r *Reconciler) deploy(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.observed.Locked {
		return r.stop(s, ReasonLocked, fmt.Sprintf("machine %s (%s) is locked: unlock it in MAAS", s.observed.Hostname, s.observed.SystemID))
	}
	if result, waits := r.pausing(s); waits {
		return result, phase.ErrStop
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
		UserData:     s.userData(data),
		Ephemeral:    s.machine.Spec.DeployInMemory,
		Comment:      fmt.Sprintf("for MaasMachine %s/%s", s.machine.Namespace, s.machine.Name),
	})
	if err != nil {
		return r.notDeployed(ctx, s, err)
	}
	r.refusals.end(m.SystemID)
	r.common.clear(s.identitySecret())
	r.take(s, m)
	s.findings.outcome = lifecycle.Evaluate(lifecycle.Installing, m)
	r.normal(s, lifecycle.ReasonDeploying, fmt.Sprintf("deploying %s on machine %s (%s)", s.machine.Spec.Image, m.Hostname, m.SystemID))
	return ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}, nil
}

func (r *Reconciler) stop(s *scope, reason, message string) (ctrl.Result, error) {
	s.findings.problem = &Problem{reason, message}
	return ctrl.Result{RequeueAfter: jitter(r.Timing.Problem)}, phase.ErrStop
}

// notDeployed releases a machine immediately if its network or storage is not deployable. Other errors may be
// temporary.
func (r *Reconciler) notDeployed(ctx context.Context, s *scope, err error) (ctrl.Result, error) {
	s.identity.Inventory.Forget(s.observed.SystemID)
	if maas.FieldMessages(err, "network") != nil || maas.FieldMessages(err, "storage") != nil {
		return r.giveUp(ctx, s, lifecycle.Outcome{Action: lifecycle.Retry, Reason: ReasonNotDeployable, Message: err.Error()})
	}
	return r.heldUp(ctx, s, err)
}

// heldUp retries with a growing delay while MAAS rejects a change of the machine. If that lasts too long, another
// machine is tried. A machine that is rejected for a cause that it shares with others stays allocated, and its
// rejections are no failed attempt.
func (r *Reconciler) heldUp(ctx context.Context, s *scope, err error) (ctrl.Result, error) {
	if !refused(err) || ctx.Err() != nil {
		return r.problem(ctx, s, err)
	}
	now, p, shared := r.Clock.Now(), ProblemOf(err), r.sharedCause(s, err)
	lasted := min(r.lasted(s), r.common.sinceShared(s.observed.SystemID, now))
	switch {
	case shared != "":
		p.Message = fmt.Sprintf("%s; %s; machine %s (%s) stays allocated, and the call is retried", p.Message, shared, s.observed.Hostname, s.observed.SystemID)
	case !s.provisioned() && lasted > r.patience(s, err):
		return r.giveUp(ctx, s, lifecycle.Outcome{Action: lifecycle.Retry, Reason: ReasonNotDeployable, Message: err.Error()})
	}
	if lacksImage(err) {
		p.Reason = ReasonImageNotFound
	}
	s.findings.problem = &p
	return ctrl.Result{RequeueAfter: r.refusals.add(s.observed.SystemID, p, now)}, phase.ErrStop
}

// patience returns how long a machine stays allocated while MAAS rejects a change. Rejected parameters seldom become
// valid; a power driver may become available again.
func (r *Reconciler) patience(s *scope, err error) time.Duration {
	if maas.IsInvalid(err) {
		return r.Timing.Refused
	}
	return timeout(s.machine.Spec.Timeouts.Allocate, r.Timing.Allocate)
}

func lacksImage(err error) bool { return maas.FieldMessages(err, "distro_series") != nil }

// pausing repeats the last rejection while the backoff for the machine lasts.
func (r *Reconciler) pausing(s *scope) (ctrl.Result, bool) {
	p, left := r.refusals.standing(s.observed.SystemID, r.Clock.Now())
	if left <= 0 {
		return ctrl.Result{}, false
	}
	s.findings.problem = &p
	return ctrl.Result{RequeueAfter: left}, true
}

// bootstrap reads the Secret with the bootstrap data, once per reconcile. It returns nil while there is no data. The
// Secret is not cached, since the data of one machine is needed once.
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

// userData returns the bootstrap data with a token for this machine only. Without a token of the pool, it returns the
// bootstrap data unchanged.
func (s *scope) userData(data map[string][]byte) []byte {
	return machinetoken.Personalize(data[bootstrapKey], data[hyperv1.UserDataTokenKey], s.owner.Name)
}

func (r *Reconciler) waitForBootstrap(s *scope) (ctrl.Result, error) {
	return r.stop(s, ReasonWaitingForBootstrapData, fmt.Sprintf("waiting for key %q of Secret %s with the bootstrap data", bootstrapKey, s.bootstrapSecret()))
}
