// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/repair"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/upsert"
)

// admitted is the value of the label on the only machine that the health check of a pool may replace.
const admitted = "true"

// networkNotReady is in the message of a kubelet whose runtime has no network for pods.
const networkNotReady = "NetworkPluginNotReady"

// blind lists the reasons with which Cluster API reports that it cannot observe a Node.
var blind = []string{
	clusterv1.MachineNodeConnectionDownReason, clusterv1.MachineNodeInternalErrorReason,
	clusterv1.MachineNodeInspectionFailedReason,
}

// holdRepair removes the repair label from machines that must no longer be replaced. It is an early phase, so it runs
// even if a later phase stops the reconcile. Only admitRepair permits the replacement of another machine.
func (r *Reconciler) holdRepair(ctx context.Context, s *scope) (ctrl.Result, error) {
	mhc := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(), Name: s.pool.Name}}
	existed, err := r.exists(ctx, mhc)
	if err != nil || !existed || !s.pool.Spec.Management.AutoRepair {
		s.clear(hyperv1.NodePoolRepairAllowedConditionType)
		return ctrl.Result{}, errors.Join(err, r.permit(ctx, s, ""))
	}
	decision, err := s.decideRepair(mhc)
	if err != nil {
		return ctrl.Result{}, errors.Join(err, r.permit(ctx, s, ""))
	}
	before := func(m *clusterv1.Machine) bool { return m.Name == decision.Machine && isAdmitted(m) }
	if !slices.ContainsFunc(s.machines, before) {
		decision.Machine = ""
	}
	s.reportRepair(decision)
	return ctrl.Result{RequeueAfter: decision.After}, r.permit(ctx, s, decision.Machine)
}

// admitRepair lets the health check replace a machine whose failure is its own. It records the repair before it
// permits the repair.
func (r *Reconciler) admitRepair(
	ctx context.Context, s *scope, mhc *clusterv1.MachineHealthCheck,
) (ctrl.Result, error) {
	decision, err := s.decideRepair(mhc)
	if err != nil {
		return ctrl.Result{}, errors.Join(err, r.permit(ctx, s, ""))
	}
	s.reportRepair(decision)
	if text := decision.History.String(); text != mhc.Annotations[hyperv1.RepairHistoryAnnotation] {
		if err := upsert.PatchLatest(ctx, r.Client, mhc, func() {
			annotate(mhc, hyperv1.RepairHistoryAnnotation, text)
			if text == "" {
				delete(mhc.Annotations, hyperv1.RepairHistoryAnnotation)
			}
		}); err != nil {
			return ctrl.Result{}, errors.Join(err, r.permit(ctx, s, ""))
		}
	}
	return ctrl.Result{RequeueAfter: decision.After}, r.permit(ctx, s, decision.Machine)
}

func isAdmitted(m *clusterv1.Machine) bool {
	_, labelled := m.Labels[hyperv1.RepairAdmittedLabel]
	return labelled
}

// permit labels the machine with the given name, and removes the label from all others. If a machine that failed a
// health check is healthy again, it is labeled too. Cluster API then checks it again and cancels the replacement.
func (r *Reconciler) permit(ctx context.Context, s *scope, name string) error {
	var failures []error
	for _, m := range s.machines {
		failed := meta.IsStatusConditionFalse(m.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
		permitted := name != "" && m.Name == name || failed && s.ofRepair(m, 0).Healthy
		if permitted == isAdmitted(m) {
			continue
		}
		failures = append(failures, client.IgnoreNotFound(upsert.Patch(ctx, r.Client, m, func() {
			if !permitted {
				delete(m.Labels, hyperv1.RepairAdmittedLabel)
				return
			}
			metav1.SetMetaDataLabel(&m.ObjectMeta, hyperv1.RepairAdmittedLabel, admitted)
		})))
	}
	return errors.Join(failures...)
}

// reportRepair reports whether a failing machine is replaced, and why not. The condition exists only while a machine
// fails.
func (s *scope) reportRepair(decision repair.Decision) {
	conditionType := hyperv1.NodePoolRepairAllowedConditionType
	switch {
	case decision.Machine != "":
		s.setCondition(condition.True(conditionType, decision.Reason, decision.Message))
	case decision.Reason == "" || decision.Reason == hyperv1.NodePoolAsExpectedReason:
		s.clear(conditionType)
	default:
		s.reject(conditionType, decision.Reason, decision.Message)
	}
}

// decideRepair decides which machine the health check may replace. It uses the timeout of the health check.
func (s *scope) decideRepair(mhc *clusterv1.MachineHealthCheck) (repair.Decision, error) {
	history, err := repair.Parse(mhc.Annotations[hyperv1.RepairHistoryAnnotation])
	if err != nil {
		return repair.Decision{}, fmt.Errorf("MachineHealthCheck %s/%s: %w; remove its annotation %s",
			mhc.Namespace, mhc.Name, err, hyperv1.RepairHistoryAnnotation)
	}
	unready := s.traits().HealthCheck.NodeUnready
	for _, c := range mhc.Spec.Checks.UnhealthyNodeConditions {
		unready = time.Duration(ptr.Deref(c.TimeoutSeconds, 0)) * time.Second
	}
	state := repair.State{
		Now: s.now, History: history, MaxUnhealthy: s.maxUnhealthy(), Provider: s.sharedByProvider(),
		Paused:  s.paused() || pause.Until(s.hc.Spec.PausedUntil, s.now).Paused,
		Cluster: s.hc.Status.Conditions, Pool: s.lastConditions(),
	}
	for _, m := range s.machines {
		state.Machines = append(state.Machines, s.ofRepair(m, unready))
	}
	for _, m := range s.neighbors {
		other := s.ofRepair(m, unready)
		other.OtherPool = true
		state.Machines = append(state.Machines, other)
	}
	return repair.Decide(state), nil
}

// maxUnhealthy returns the number of machines that the annotation allows to fail. An invalid annotation has no effect.
func (s *scope) maxUnhealthy() int {
	for _, text := range []string{s.override(hyperv1.MachineHealthCheckMaxUnhealthyAnnotation), defaultMaxUnhealthy} {
		maximum := intstr.Parse(text)
		if n, err := intstr.GetScaledValueFromIntOrPercent(&maximum, len(s.machines), false); text != "" && err == nil {
			return n
		}
	}
	return 0
}

// lastConditions returns the conditions of this reconcile. For phases that have not run yet, it returns the conditions
// of the previous reconcile.
func (s *scope) lastConditions() []metav1.Condition {
	var all []metav1.Condition
	for _, c := range mergeConditions(s.pool.Status.Conditions, s) {
		all = append(all, metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status)})
	}
	return all
}

func (s *scope) sharedByProvider() string {
	adviser, ok := s.platform.(platform.RepairAdviser)
	if !ok {
		return ""
	}
	for _, m := range s.machines {
		if infra := s.infra[m.Spec.InfrastructureRef.Name]; infra != nil {
			if _, shared := adviser.RepairAdvice(infra); shared != "" {
				return shared
			}
		}
	}
	return ""
}

// ofRepair describes a machine as an input of repair.Decide. unready is the time after which the health check replaces
// a machine whose Node is not Ready.
func (s *scope) ofRepair(m *clusterv1.Machine, unready time.Duration) repair.Machine {
	of := repair.Machine{
		Name: m.Name, Zone: cmp.Or(m.Status.FailureDomain, m.Spec.FailureDomain),
		Joined: m.Status.NodeRef.IsDefined(), Admitted: isAdmitted(m),
		Marked: meta.IsStatusConditionFalse(m.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition),
	}
	if m.DeletionTimestamp != nil {
		of.Deleted = m.DeletionTimestamp.Time
	}
	ready := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineNodeReadyCondition)
	if ready == nil {
		ready = meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineNodeHealthyCondition)
	}
	_, asked := m.Annotations[clusterv1.RemediateMachineAnnotation]
	failed := meta.FindStatusCondition(m.Status.Conditions, failedCondition)
	switch {
	case asked:
		of.Gone, of.Cause, of.Due = true, clusterv1.MachineHealthCheckHasRemediateAnnotationReason, s.now
	case failed != nil && failed.Status == metav1.ConditionTrue:
		of.Gone, of.Cause = of.Joined, failed.Reason
		of.Since, of.Due = failed.LastTransitionTime.Time, failed.LastTransitionTime.Time
	case !of.Joined:
		s.ofStart(m, &of)
	case ready == nil: // Cluster API has not checked the Node yet.
	case ready.Status == metav1.ConditionTrue:
		of.Healthy, of.Since = true, ready.LastTransitionTime.Time
	default:
		of.Cause, of.Since = ready.Reason, ready.LastTransitionTime.Time
		of.WithoutNetwork = strings.Contains(ready.Message, networkNotReady)
		if !slices.Contains(blind, ready.Reason) {
			of.Due = of.Since.Add(unready)
		}
		if adviser, ok := s.platform.(platform.RepairAdviser); ok {
			if infra := s.infra[m.Spec.InfrastructureRef.Name]; infra != nil {
				of.HostLost, _ = adviser.RepairAdvice(infra)
			}
		}
	}
	_, skipped := m.Annotations[clusterv1.MachineSkipRemediationAnnotation]
	_, paused := m.Annotations[clusterv1.PausedAnnotation]
	if skipped || paused {
		of.Due = time.Time{}
	}
	return of
}

// ofStart sets the fields of a machine without a Node. A machine that waits for capacity neither starts nor fails.
func (s *scope) ofStart(m *clusterv1.Machine, of *repair.Machine) {
	begun := true
	if infra := s.infra[m.Spec.InfrastructureRef.Name]; infra != nil {
		begun = !s.platform.MachineStart(infra).Begun.IsZero() || s.now.Sub(m.CreationTimestamp.Time) <= shortWait
	}
	from := m.CreationTimestamp.Time
	if c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition); c != nil &&
		c.Status == metav1.ConditionTrue && c.LastTransitionTime.After(from) {
		from = c.LastTransitionTime.Time
	}
	end := from.Add(s.nodeStartup())
	if m.Annotations[clusterv1.MachineSkipRemediationAnnotation] == patienceValue || s.now.Before(end) {
		of.Starting = begun
		return
	}
	of.Cause, of.Since, of.Due = clusterv1.MachineHealthCheckNodeStartupTimeoutReason, end, end
}
