// SPDX-License-Identifier: Apache-2.0

package health

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

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// failedCondition makes the machine health check replace a Machine at once.
	failedCondition = hyperv1.MachineFailedCondition
	// patienceValue is the value that this operator sets in Cluster API's annotation that disables remediation.
	patienceValue = "hypershift.openshift.io/waiting-for-capacity"
	// shortWait is how long a machine may wait for capacity. After a longer wait, its startup time counts from when it got
	// the capacity.
	shortWait = 5 * time.Minute
)

// followStartups reports to Cluster API which starting machines will never become a Node, and which ones only wait for
// capacity. Cluster API's startup timeout runs from the creation of a Machine, even while MAAS has no machine to
// allocate.
func (h Check) FollowStartups(ctx context.Context) (ctrl.Result, error) {
	if h.Platform.MachineTemplates() == nil {
		return ctrl.Result{}, nil
	}
	var result ctrl.Result
	var failures []error
	for _, machine := range h.Machines {
		infra := h.Infra[machine.Spec.InfrastructureRef.Name]
		if infra == nil || !machine.DeletionTimestamp.IsZero() {
			continue
		}
		start := h.Platform.MachineStart(infra)
		patient, left := h.patience(machine, start)
		result = phase.Sooner(result, ctrl.Result{RequeueAfter: left})
		failures = append(failures,
			client.IgnoreNotFound(h.setPatience(ctx, machine, patient)), client.IgnoreNotFound(h.setFailed(ctx, machine, start)))
	}
	return result, errors.Join(failures...)
}

// patience reports whether health checks must skip a machine, and when to check again; zero if a watch reports the
// change. A machine that got its capacity late has the full startup timeout from that moment.
func (h Check) patience(machine *clusterv1.Machine, start platform.MachineStart) (patient bool, left time.Duration) {
	if start.Reason != "" || machine.Status.NodeRef.IsDefined() {
		return false, 0
	}
	begun := start.Begun
	if begun.IsZero() {
		begun = h.Now
	}
	waited := begun.Sub(machine.CreationTimestamp.Time)
	switch {
	case waited > shortWait && start.Begun.IsZero():
		return true, 0
	case waited > shortWait:
		left = max(0, start.Begun.Add(h.NodeStartup()).Sub(h.Now))
		return left > 0, left
	case start.Begun.IsZero():
		return false, shortWait - waited + time.Second
	}
	return false, 0
}

// NodeStartup returns how long a machine may take to become a Node when it does not wait for capacity. An annotation
// sets it, or else the platform derives it from the pool's own timeouts.
func (h Check) NodeStartup() time.Duration {
	startup, err := h.nodeStartupOverride()
	if err != nil || startup == 0 {
		startup = h.Platform.NodeStartup(h.View())
	}
	if startup == 0 {
		startup = h.Traits().HealthCheck.NodeStartup
	}
	return startup
}

// setPatience sets or removes the annotation that disables remediation. It does not change an annotation that a user
// has set.
func (h Check) setPatience(ctx context.Context, machine *clusterv1.Machine, patient bool) error {
	value, annotated := machine.Annotations[clusterv1.MachineSkipRemediationAnnotation]
	if annotated && value != patienceValue || annotated == patient {
		return nil
	}
	return upsert.Patch(ctx, h.Client, machine, func() {
		if patient {
			scope.Annotate(machine, clusterv1.MachineSkipRemediationAnnotation, patienceValue)
			return
		}
		delete(machine.Annotations, clusterv1.MachineSkipRemediationAnnotation)
	})
}

// setFailed records in a condition that the platform reports a machine as failed. If its Node is healthy, one of the
// two reports is wrong, and the machine stays. Cluster API writes conditions too, so a patch of an outdated object must
// fail.
func (h Check) setFailed(ctx context.Context, machine *clusterv1.Machine, start platform.MachineStart) error {
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
	if err := h.Client.Status().Patch(ctx, machine, lock); err != nil {
		return fmt.Errorf("writing condition %s of Machine %s/%s: %w", failedCondition, machine.Namespace, machine.Name, err)
	}
	return nil
}
