// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// failedCondition of a Machine is True while its platform says that it will never be a Node. The machine health check
	// replaces such a machine at once.
	failedCondition = "hypershift.openshift.io/Failed"
	// patienceValue is the value of Cluster API's annotation that keeps health checks away, where this operator set it.
	patienceValue = "hypershift.openshift.io/waiting-for-capacity"
	// shortWait is how long a machine may have waited for capacity before its start-up is counted from when it got it.
	shortWait = 5 * time.Minute
)

// followStartups tells Cluster API what it cannot see of machines on their way to a Node: which will never be one, and which
// only wait for capacity. Its clock for a Node runs from the creation of a Machine, also while MAAS has nothing to give.
func (r *Reconciler) followStartups(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.platform.MachineTemplates() == nil {
		return ctrl.Result{}, nil
	}
	var result ctrl.Result
	var failures []error
	for _, machine := range s.machines {
		infra := s.infra[machine.Spec.InfrastructureRef.Name]
		if infra == nil || !machine.DeletionTimestamp.IsZero() {
			continue
		}
		start := s.platform.MachineStart(infra)
		patient, left := s.patience(machine, start)
		result = phase.Sooner(result, ctrl.Result{RequeueAfter: left})
		failures = append(failures,
			client.IgnoreNotFound(r.setPatience(ctx, machine, patient)), client.IgnoreNotFound(r.setFailed(ctx, machine, start)))
	}
	return result, errors.Join(failures...)
}

// patience tells whether health checks are to leave a machine alone, and when to look again; zero for a watch to tell. A machine
// that got its capacity late has as long from then as any other has from its creation.
func (s *scope) patience(machine *clusterv1.Machine, start platform.MachineStart) (patient bool, left time.Duration) {
	if start.Reason != "" || machine.Status.NodeRef.IsDefined() {
		return false, 0
	}
	begun := start.Begun
	if begun.IsZero() {
		begun = s.now
	}
	waited := begun.Sub(machine.CreationTimestamp.Time)
	switch {
	case waited > shortWait && start.Begun.IsZero():
		return true, 0
	case waited > shortWait:
		left = max(0, start.Begun.Add(s.nodeStartup()).Sub(s.now))
		return left > 0, left
	case start.Begun.IsZero():
		return false, shortWait - waited + time.Second
	}
	return false, 0
}

// nodeStartup is how long a machine may take until its Node is there, when it waits for nothing: what an annotation says, or
// else what the platform derives from the pool's own time-outs.
func (s *scope) nodeStartup() time.Duration {
	startup, err := s.nodeStartupOverride()
	if err != nil || startup == 0 {
		startup = s.platform.NodeStartup(s.view())
	}
	if startup == 0 {
		startup = s.traits().HealthCheck.NodeStartup
	}
	return startup
}

// setPatience keeps health checks away, or lets them come. What a person annotated stays.
func (r *Reconciler) setPatience(ctx context.Context, machine *clusterv1.Machine, patient bool) error {
	value, annotated := machine.Annotations[clusterv1.MachineSkipRemediationAnnotation]
	if annotated && value != patienceValue || annotated == patient {
		return nil
	}
	return upsert.Patch(ctx, r.Client, machine, func() {
		if patient {
			annotate(machine, clusterv1.MachineSkipRemediationAnnotation, patienceValue)
			return
		}
		delete(machine.Annotations, clusterv1.MachineSkipRemediationAnnotation)
	})
}

// setFailed writes down what the platform says of a machine beyond repair. While its Node is healthy, one of the two is wrong,
// and the machine stays. Cluster API writes conditions too, so a write on an old state must fail.
func (r *Reconciler) setFailed(ctx context.Context, machine *clusterv1.Machine, start platform.MachineStart) error {
	before := machine.DeepCopy()
	switch {
	case start.Reason != "" && !meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineNodeHealthyCondition):
		meta.SetStatusCondition(&machine.Status.Conditions, condition.True(failedCondition, start.Reason, start.Message))
	case meta.FindStatusCondition(machine.Status.Conditions, failedCondition) != nil:
		meta.SetStatusCondition(&machine.Status.Conditions, condition.False(failedCondition, "NotFailed", ""))
	}
	if equality.Semantic.DeepEqual(before.Status.Conditions, machine.Status.Conditions) {
		return nil
	}
	lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, machine, lock); err != nil {
		return fmt.Errorf("writing condition %s of Machine %s/%s: %w", failedCondition, machine.Namespace, machine.Name, err)
	}
	return nil
}
