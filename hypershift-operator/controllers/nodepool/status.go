// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/upsert"
)

// report computes the status of this reconcile, writes it once, and emits events for changes.
func (r *Reconciler) report(ctx context.Context, s *reconciliation, failure error) error {
	s.reportFailure(failure)
	before := s.Pool.Status.DeepCopy()
	err := upsert.Status(ctx, r.Client, s.Pool, func() { s.Pool.Status = computeStatus(s) })
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	r.announce(s, before.Conditions)
	return nil
}

// reportFailure reports an error of the reconcile, because the error may not appear in another condition. The
// condition exists only while there is an error.
func (s *reconciliation) reportFailure(failure error) {
	conditionType := string(hyperv1.ReconciliationSucceeded)
	if failure == nil {
		s.Clear(conditionType)
		return
	}
	s.SetFalse(conditionType, hyperv1.ReconciliationErrorReason, failure.Error())
}

// computeStatus computes the status from the scope alone.
func computeStatus(s *reconciliation) hyperv1.NodePoolStatus {
	status := *s.Pool.Status.DeepCopy()
	if s.replicas != nil {
		status.Replicas = *s.replicas
	}
	if s.version != "" {
		status.Version = s.version
	}
	if s.Kept != nil {
		status.Platform = s.Kept.Status
	}
	if s.HC != nil {
		status.Selector = hyperv1.NodePoolAnnotation + "=" + s.Pool.Name
		status.NodesInfo = nodesInfo(s.Machines, status.Version)
		status.OSImageStream = osStream(s.Machines)
	}
	status.Conditions = poolConditions(s)
	return status
}

// poolConditions returns the merged conditions in the type of a NodePool, with their severity.
func poolConditions(s *reconciliation) []hyperv1.NodePoolCondition {
	merged := s.Merged()
	all := make([]hyperv1.NodePoolCondition, 0, len(merged))
	for _, c := range merged {
		all = append(all, hyperv1.NodePoolCondition{
			Type: c.Type, Status: corev1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			LastTransitionTime: c.LastTransitionTime, ObservedGeneration: c.ObservedGeneration, Severity: severity(c, s.underway()),
		})
	}
	return all
}

// informative are conditions that may be false although the pool is healthy.
var informative = []string{
	hyperv1.NodePoolAutoscalingEnabledConditionType, hyperv1.NodePoolAutorepairEnabledConditionType,
	hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType,
	hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType,
}

// underway are reasons that only mean that an operation is in progress.
var underway = []string{
	hyperv1.NodePoolNotFoundReason, hyperv1.IgnitionEndpointMissingReason, hyperv1.IgnitionCACertMissingReason,
	hyperv1.NodePoolIgnitionNotReachedReason, "KubeconfigMissing", "Deleting",
	clusterv1.NotReadyReason, clusterv1.ReadyUnknownReason, clusterv1.InspectionFailedReason, clusterv1.MachineNodeDoesNotExistReason,
}

// underway returns the reasons above, and the reasons of the platform for an operation in progress.
func (s *reconciliation) underway() []string {
	if s.Platform == nil {
		return underway
	}
	return slices.Concat(underway, s.Platform.Underway())
}

// severity returns Warning for a condition that needs attention.
func severity(c metav1.Condition, underway []string) string {
	if c.Status != metav1.ConditionFalse || slices.Contains(informative, c.Type) && c.Reason != hyperv1.NodePoolInplaceUpgradeFailedReason {
		return ""
	}
	for reason := range strings.SplitSeq(c.Reason, ",") {
		if !slices.Contains(underway, reason) && !strings.HasPrefix(reason, "Waiting") {
			return "Warning"
		}
	}
	return ""
}

// announce emits an event for each condition whose status changed or that failed for a new reason.
func (r *Reconciler) announce(s *reconciliation, before []hyperv1.NodePoolCondition) {
	for _, c := range s.Pool.Status.Conditions {
		last := scope.Find(before, c.Type)
		if last != nil && last.Status == c.Status && (c.Status == corev1.ConditionTrue || last.Reason == c.Reason) {
			continue
		}
		if last == nil && c.Status == corev1.ConditionTrue && c.Message == "" {
			continue // A new pool has many conditions that are good from the start.
		}
		kind := corev1.EventTypeNormal
		if c.Severity != "" {
			kind = corev1.EventTypeWarning
		}
		// The condition type is the action of the event, because events that differ only in their message are shown as one.
		r.Recorder.Eventf(s.Pool, nil, kind, eventReason(c.Reason), c.Type, "%s is %s: %s", c.Type, c.Status,
			condition.Shorten(cmp.Or(c.Message, c.Reason), 900))
	}
}

// eventReason shortens a condition's reason, which may join several, to the maximum length of an event's reason.
func eventReason(reason string) string {
	return condition.Shorten(cmp.Or(reason, "Unknown"), 128)
}
