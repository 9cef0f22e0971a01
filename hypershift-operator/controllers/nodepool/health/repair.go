// SPDX-License-Identifier: Apache-2.0

package health

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
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
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
func (h Check) HoldRepair(ctx context.Context) (ctrl.Result, error) {
	mhc := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace(), Name: h.Pool.Name}}
	existed, err := scope.Exists(ctx, h.Client, mhc)
	if err != nil || !existed || !h.Pool.Spec.Management.AutoRepair {
		h.Clear(hyperv1.NodePoolRepairAllowedConditionType)
		return ctrl.Result{}, errors.Join(err, h.permit(ctx, ""))
	}
	decision, err := h.decideRepair(mhc)
	if err != nil {
		return ctrl.Result{}, errors.Join(err, h.permit(ctx, ""))
	}
	before := func(m *clusterv1.Machine) bool { return m.Name == decision.Machine && isAdmitted(m) }
	if !slices.ContainsFunc(h.Machines, before) {
		decision.Machine = ""
	}
	h.reportRepair(decision)
	return ctrl.Result{RequeueAfter: decision.After}, h.permit(ctx, decision.Machine)
}

// admitRepair lets the health check replace a machine whose failure is its own. It records the repair before it
// permits the repair.
func (h Check) admitRepair(
	ctx context.Context, mhc *clusterv1.MachineHealthCheck,
) (ctrl.Result, error) {
	decision, err := h.decideRepair(mhc)
	if err != nil {
		return ctrl.Result{}, errors.Join(err, h.permit(ctx, ""))
	}
	h.reportRepair(decision)
	if text := decision.History.String(); text != mhc.Annotations[hyperv1.RepairHistoryAnnotation] {
		if err := upsert.PatchLatest(ctx, h.Client, mhc, func() {
			scope.Annotate(mhc, hyperv1.RepairHistoryAnnotation, text)
			if text == "" {
				delete(mhc.Annotations, hyperv1.RepairHistoryAnnotation)
			}
		}); err != nil {
			return ctrl.Result{}, errors.Join(err, h.permit(ctx, ""))
		}
	}
	return ctrl.Result{RequeueAfter: decision.After}, h.permit(ctx, decision.Machine)
}

func isAdmitted(m *clusterv1.Machine) bool {
	_, labelled := m.Labels[hyperv1.RepairAdmittedLabel]
	return labelled
}

// permit labels the machine with the given name, and removes the label from all others. If a machine that failed a
// health check is healthy again, it is labeled too. Cluster API then checks it again and cancels the replacement.
func (h Check) permit(ctx context.Context, name string) error {
	var failures []error
	for _, m := range h.Machines {
		failed := meta.IsStatusConditionFalse(m.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
		permitted := name != "" && m.Name == name || failed && h.ofRepair(m, 0).Healthy
		if permitted == isAdmitted(m) {
			continue
		}
		failures = append(failures, client.IgnoreNotFound(upsert.Patch(ctx, h.Client, m, func() {
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
func (h Check) reportRepair(decision repair.Decision) {
	conditionType := hyperv1.NodePoolRepairAllowedConditionType
	switch {
	case decision.Machine != "":
		h.SetCondition(condition.True(conditionType, decision.Reason, decision.Message))
	case decision.Reason == "" || decision.Reason == hyperv1.NodePoolAsExpectedReason:
		h.Clear(conditionType)
	default:
		h.SetFalse(conditionType, decision.Reason, decision.Message)
	}
}

// decideRepair decides which machine the health check may replace. It uses the timeout of the health check.
func (h Check) decideRepair(mhc *clusterv1.MachineHealthCheck) (repair.Decision, error) {
	history, err := repair.Parse(mhc.Annotations[hyperv1.RepairHistoryAnnotation])
	if err != nil {
		return repair.Decision{}, fmt.Errorf("MachineHealthCheck %s/%s: %w; remove its annotation %s",
			mhc.Namespace, mhc.Name, err, hyperv1.RepairHistoryAnnotation)
	}
	unready := h.Traits().HealthCheck.NodeUnready
	for _, c := range mhc.Spec.Checks.UnhealthyNodeConditions {
		unready = time.Duration(ptr.Deref(c.TimeoutSeconds, 0)) * time.Second
	}
	state := repair.State{
		Now: h.Now, History: history, MaxUnhealthy: h.maxUnhealthy(), Provider: h.sharedByProvider(),
		Paused:  h.Paused() || pause.Until(h.HC.Spec.PausedUntil, h.Now).Paused,
		Cluster: h.HC.Status.Conditions, Pool: h.Merged(),
	}
	for _, m := range h.Machines {
		state.Machines = append(state.Machines, h.ofRepair(m, unready))
	}
	for _, m := range h.Neighbors {
		other := h.ofRepair(m, unready)
		other.OtherPool = true
		state.Machines = append(state.Machines, other)
	}
	return repair.Decide(state), nil
}

// maxUnhealthy returns the number of machines that the annotation allows to fail. An invalid annotation has no effect.
func (h Check) maxUnhealthy() int {
	for _, text := range []string{h.override(hyperv1.MachineHealthCheckMaxUnhealthyAnnotation), defaultMaxUnhealthy} {
		maximum := intstr.Parse(text)
		if n, err := intstr.GetScaledValueFromIntOrPercent(&maximum, len(h.Machines), false); text != "" && err == nil {
			return n
		}
	}
	return 0
}

func (h Check) sharedByProvider() string {
	adviser, ok := h.Platform.(platform.RepairAdviser)
	if !ok {
		return ""
	}
	for _, m := range h.Machines {
		if infra := h.Infra[m.Spec.InfrastructureRef.Name]; infra != nil {
			if _, shared := adviser.RepairAdvice(infra); shared != "" {
				return shared
			}
		}
	}
	return ""
}

// ofRepair describes a machine as an input of repair.Decide. unready is the time after which the health check replaces
// a machine whose Node is not Ready.
func (h Check) ofRepair(m *clusterv1.Machine, unready time.Duration) repair.Machine {
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
		of.Gone, of.Cause, of.Due = true, clusterv1.MachineHealthCheckHasRemediateAnnotationReason, h.Now
	case failed != nil && failed.Status == metav1.ConditionTrue:
		of.Gone, of.Cause = of.Joined, failed.Reason
		of.Since, of.Due = failed.LastTransitionTime.Time, failed.LastTransitionTime.Time
	case !of.Joined:
		h.ofStart(m, &of)
	case ready == nil: // Cluster API has not checked the Node yet.
	case ready.Status == metav1.ConditionTrue:
		of.Healthy, of.Since = true, ready.LastTransitionTime.Time
	default:
		of.Cause, of.Since = ready.Reason, ready.LastTransitionTime.Time
		of.WithoutNetwork = strings.Contains(ready.Message, networkNotReady)
		if !slices.Contains(blind, ready.Reason) {
			of.Due = of.Since.Add(unready)
		}
		if adviser, ok := h.Platform.(platform.RepairAdviser); ok {
			if infra := h.Infra[m.Spec.InfrastructureRef.Name]; infra != nil {
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
func (h Check) ofStart(m *clusterv1.Machine, of *repair.Machine) {
	begun := true
	if infra := h.Infra[m.Spec.InfrastructureRef.Name]; infra != nil {
		begun = !h.Platform.MachineStart(infra).Begun.IsZero() || h.Now.Sub(m.CreationTimestamp.Time) <= shortWait
	}
	from := m.CreationTimestamp.Time
	if c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition); c != nil &&
		c.Status == metav1.ConditionTrue && c.LastTransitionTime.After(from) {
		from = c.LastTransitionTime.Time
	}
	end := from.Add(h.NodeStartup())
	if m.Annotations[clusterv1.MachineSkipRemediationAnnotation] == patienceValue || h.Now.Before(end) {
		of.Starting = begun
		return
	}
	of.Cause, of.Since, of.Due = clusterv1.MachineHealthCheckNodeStartupTimeoutReason, end, end
}
