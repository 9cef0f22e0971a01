// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/upsert"
)

// KeptAnnotation of a MaasMachine that is deleted tells that its machine is kept for its successor: no other MaasMachine of the namespace
// takes it in the moment in which MAAS has it back.
const KeptAnnotation = "infrastructure.cluster.x-k8s.io/kept-for-successor"

// Reasons of the events about machines that are kept.
const (
	ReasonKept    = "MachineKept"
	ReasonNotKept = "MachineNotKept"
)

// keepEvery is how often a machine is looked at that is to be allocated anew: who asks first has it.
const keepEvery = time.Second

// kept tells that the machine of the scope stays with its pool.
func (s *scope) kept() bool { return s.machine.Annotations[KeptAnnotation] != "" }

// reserved is the record about a machine that this MaasMachine leaves to its successor.
func (s *scope) reserved(systemID string) bool {
	record, ok := reservation.Records.Of(s.infra)[systemID]
	return ok && record.UID == s.uid()
}

// intend writes down, before the machine is given back, that a successor of this MaasMachine wants it. A machine that is ill is not kept.
func (r *Reconciler) intend(ctx context.Context, s *scope) error {
	well := s.observed != nil && s.observed.Status == maas.StatusDeployed && len(failuresOf(s.machine)) == 0 && s.machine.Annotations[UIDAnnotation] != ""
	if s.kept() || !well || s.lost || s.machine.Spec.IsLXD() || !s.takesOver() || !s.infra.DeletionTimestamp.IsZero() {
		return nil
	}
	succeeded, err := r.succeeded(ctx, s)
	if err != nil || !succeeded {
		return err
	}
	return r.write(ctx, s, func() error {
		annotate(s.machine, KeptAnnotation, s.machine.Labels[clusterv1.MachineDeploymentNameLabel])
		return nil
	})
}

// succeeded tells that a roll-out of the MachineDeployment replaces this MaasMachine, and makes the new one after this one is gone.
func (r *Reconciler) succeeded(ctx context.Context, s *scope) (bool, error) {
	name := s.machine.Labels[clusterv1.MachineDeploymentNameLabel]
	if s.owner == nil || meta.FindStatusCondition(s.owner.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition) != nil {
		return false, nil
	}
	md, set := &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}
	if there, err := r.read(ctx, s, name, md); !there {
		return false, err
	}
	if there, err := r.read(ctx, s, s.machine.Labels[clusterv1.MachineSetNameLabel], set); !there {
		return false, err
	}
	return md.DeletionTimestamp.IsZero() && deref(md.Spec.Replicas) > 0 && !surges(md) && r.outdated(set, md), nil
}

// read reads what the MaasMachine is of; false where there is none, or an older Role does not let us see it.
func (r *Reconciler) read(ctx context.Context, s *scope, name string, obj client.Object) (there bool, _ error) {
	if name == "" {
		return false, nil
	}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.machine.Namespace, Name: name}, obj)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %T %s/%s: %w", obj, s.machine.Namespace, name, err)
	}
	return true, nil
}

// surges tells that new machines come before old ones go.
func surges(md *clusterv1.MachineDeployment) bool {
	strategy := md.Spec.Rollout.Strategy
	if strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		return false
	}
	if strategy.RollingUpdate.MaxSurge == nil {
		return true
	}
	surge, err := intstr.GetScaledValueFromIntOrPercent(strategy.RollingUpdate.MaxSurge, int(deref(md.Spec.Replicas)), true)
	return err != nil || surge > 0
}

// outdated tells that a MachineDeployment makes no Machines by this MachineSet now, as Cluster API decides it. A Machine itself does not
// tell of which template its bootstrap configuration is.
func (r *Reconciler) outdated(set *clusterv1.MachineSet, md *clusterv1.MachineDeployment) bool {
	was, is, after := &set.Spec.Template.Spec, &md.Spec.Template.Spec, md.Spec.Rollout.After
	again := !after.IsZero() && after.Time.Before(r.Clock.Now()) && set.CreationTimestamp.Before(&after)
	return again || was.Version != is.Version || was.FailureDomain != is.FailureDomain || was.InfrastructureRef != is.InfrastructureRef ||
		!equality.Semantic.DeepEqual(was.Bootstrap, is.Bootstrap)
}

// keep allocates a machine anew that MAAS has back, with the same key, and leaves it to the successor. The record is written first: from
// then on nobody gives the machine back for want of an owner.
func (r *Reconciler) keep(ctx context.Context, s *scope) (ctrl.Result, error) {
	id, m := s.systemID(), s.observed
	if !s.kept() || m == nil || m.Status != maas.StatusReady || !s.takesOver() || !s.infra.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.forgo(ctx, s, id)
	}
	record := reservation.Record{UID: s.uid(), Deployment: s.machine.Labels[clusterv1.MachineDeploymentNameLabel],
		Set: s.machine.Labels[clusterv1.MachineSetNameLabel], Hostname: m.Hostname, Since: r.Clock.Now().UTC()}
	if !s.reserved(id) {
		if err := r.reserve(ctx, s, id, record); err != nil {
			return ctrl.Result{}, err
		}
	}
	got, err := s.ask(ctx, placement.Request{}, nil, id)
	if err != nil {
		s.identity.Inventory.Forget(id)
		if !placement.HasNone(err) {
			return r.problem(ctx, s, err)
		}
		r.warn(s, ReasonNotKept, fmt.Sprintf("%s: it was to be kept for a successor, and somebody else was faster", lifecycle.Describe(m)))
		return ctrl.Result{}, r.forgo(ctx, s, id)
	}
	r.take(s, got)
	r.normal(s, ReasonKept, fmt.Sprintf("%s again, for the next Machine of MachineDeployment %s", lifecycle.Describe(got), record.Deployment))
	return ctrl.Result{}, nil
}

// reserve writes a record, on the MaasCluster as it was read: what else happens to it meanwhile must not be overwritten.
func (r *Reconciler) reserve(ctx context.Context, s *scope, id string, record reservation.Record) error {
	var encodeErr error
	err := upsert.PatchLatest(ctx, r.Client, s.infra, func() { encodeErr = reservation.Records.Set(s.infra, id, record) })
	if err := errors.Join(err, encodeErr); err != nil {
		return fmt.Errorf("reserving machine %s: %w", id, err)
	}
	return nil
}

// forgo takes away the record about a machine that did not stay.
func (r *Reconciler) forgo(ctx context.Context, s *scope, id string) error {
	if !s.reserved(id) {
		return nil
	}
	return upsert.Patch(ctx, r.Client, s.infra, func() { reservation.Records.Remove(s.infra, id) })
}

// keepsAlready tells that a pass before this one allocated the machine anew, and died before the finalizer went.
func (r *Reconciler) keepsAlready(ctx context.Context, s *scope) (bool, error) {
	if !s.reserved(s.systemID()) || s.observed == nil || s.observed.Status != maas.StatusAllocated {
		return false, nil
	}
	return r.ours(ctx, s, s.observed)
}
