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

// KeptAnnotation, on a deleted MaasMachine, means that its machine is reserved for its successor. No other MaasMachine
// of the namespace may allocate the machine in the moment after its release.
const KeptAnnotation = "infrastructure.cluster.x-k8s.io/kept-for-successor"

// Reasons of the events about reserved machines.
const (
	ReasonKept    = "MachineKept"
	ReasonNotKept = "MachineNotKept"
)

// keepEvery is how often the release of a reserved machine is checked. It is short, since another user may allocate
// the machine first.
const keepEvery = time.Second

// kept reports whether the machine of the scope is reserved for its pool.
func (s *scope) kept() bool { return s.machine.Annotations[KeptAnnotation] != "" }

// reserved reports whether a record reserves the machine of this MaasMachine for its successor.
func (s *scope) reserved(systemID string) bool {
	record, ok := reservation.Records.Of(s.infra)[systemID]
	return ok && record.UID == s.uid()
}

// intend records, before the release, that the machine is reserved for a successor of this MaasMachine. An unhealthy
// machine is not reserved.
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

// succeeded reports whether a rollout of the MachineDeployment replaces this MaasMachine, and creates the replacement
// only after the deletion.
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

// read reads an object that the MaasMachine belongs to. It returns false if there is none, or if an older Role does not
// permit reading it.
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

// surges reports whether the rollout creates new machines before it deletes old ones.
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

// outdated reports whether the MachineDeployment no longer creates Machines with this MachineSet, by the rules of
// Cluster API. The MachineSets are compared because a Machine does not record the template of its bootstrap
// configuration.
func (r *Reconciler) outdated(set *clusterv1.MachineSet, md *clusterv1.MachineDeployment) bool {
	was, is, after := &set.Spec.Template.Spec, &md.Spec.Template.Spec, md.Spec.Rollout.After
	again := !after.IsZero() && after.Time.Before(r.Clock.Now()) && set.CreationTimestamp.Before(&after)
	return again || was.Version != is.Version || was.FailureDomain != is.FailureDomain || was.InfrastructureRef != is.InfrastructureRef ||
		!equality.Semantic.DeepEqual(was.Bootstrap, is.Bootstrap)
}

// keep allocates a released machine again with the same key, for the successor. It writes the record first, so that
// the sweep does not release the machine as an orphan.
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
		r.warn(s, ReasonNotKept, fmt.Sprintf("%s: not reserved for a successor: another user allocated it first", lifecycle.Describe(m)))
		return ctrl.Result{}, r.forgo(ctx, s, id)
	}
	r.take(s, got)
	r.normal(s, ReasonKept, fmt.Sprintf("%s again, for the next Machine of MachineDeployment %s", lifecycle.Describe(got), record.Deployment))
	return ctrl.Result{}, nil
}

// reserve writes a record on the MaasCluster at the resource version that was read. It must not overwrite a concurrent
// change.
func (r *Reconciler) reserve(ctx context.Context, s *scope, id string, record reservation.Record) error {
	var encodeErr error
	err := upsert.PatchLatest(ctx, r.Client, s.infra, func() { encodeErr = reservation.Records.Set(s.infra, id, record) })
	if err := errors.Join(err, encodeErr); err != nil {
		return fmt.Errorf("reserving machine %s: %w", id, err)
	}
	return nil
}

// forgo removes the record of a machine that is not reserved after all.
func (r *Reconciler) forgo(ctx context.Context, s *scope, id string) error {
	if !s.reserved(id) {
		return nil
	}
	return upsert.Patch(ctx, r.Client, s.infra, func() { reservation.Records.Remove(s.infra, id) })
}

// keepsAlready reports whether an earlier reconcile allocated the machine again, and was interrupted before it removed
// the finalizer.
func (r *Reconciler) keepsAlready(ctx context.Context, s *scope) (bool, error) {
	if !s.reserved(s.systemID()) || s.observed == nil || s.observed.Status != maas.StatusAllocated {
		return false, nil
	}
	return r.ours(ctx, s, s.observed)
}
