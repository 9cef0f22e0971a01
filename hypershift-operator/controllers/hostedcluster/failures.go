// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/podfailure"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/management"
)

// failurePoll is the interval at which pods are read while a control plane is unavailable or degraded.
const failurePoll = 15 * time.Second

// monitoringKinds are the kinds that the control-plane-operator of an OpenShift payload watches on every management
// cluster.
var monitoringKinds = []string{"PodMonitor", "PrometheusRule", "ServiceMonitor"}

// watchFailures requeues a cluster while its control plane is unavailable or degraded. No watch reports a rejected pod
// or a container that exits.
func (r *Reconciler) watchFailures(_ context.Context, s *scope) (ctrl.Result, error) {
	if unwell(s) {
		return ctrl.Result{RequeueAfter: failurePoll}, nil
	}
	return ctrl.Result{}, nil
}

// unwell reports whether the control plane is unavailable or degraded, according to its own conditions or those of the
// HostedCluster.
func unwell(s *scope) bool {
	reported := s.Reported()
	return !condition.IsTrue(reported, string(hyperv1.HostedControlPlaneAvailable)) ||
		condition.IsTrue(reported, string(hyperv1.HostedClusterDegraded)) ||
		condition.IsTrue(s.HC.Status.Conditions, string(hyperv1.HostedClusterDegraded))
}

// observeFailures finds out what keeps the pods of the control plane from running. It reads pods and events only if the
// control plane is unavailable or degraded, or a Deployment lacks pods.
func (r *Reconciler) observeFailures(ctx context.Context, s *scope) error {
	if s.HCP == nil || !s.HC.DeletionTimestamp.IsZero() || !s.HCP.DeletionTimestamp.IsZero() {
		return nil
	}
	if missing := r.missingKinds(s); len(missing) > 0 {
		s.failures = append(s.failures, podfailure.Finding{Stuck: true, Message: fmt.Sprintf(
			"The management cluster does not serve %s of %s/v1, without which the control-plane-operator of this release does not work; "+
				"run hypershift install --install-monitoring-crds", strings.Join(missing, ", "), management.Monitoring)})
	}
	here := client.InNamespace(s.Namespace)
	deployments := &appsv1.DeploymentList{}
	if err := r.LiveReader.List(ctx, deployments, here); err != nil {
		return fmt.Errorf("listing Deployments of namespace %s: %w", s.Namespace, err)
	}
	if !unwell(s) && !slices.ContainsFunc(deployments.Items, unavailable) {
		return nil
	}
	sets, pods, events := &appsv1.StatefulSetList{}, &corev1.PodList{}, &corev1.EventList{}
	for what, list := range map[string]client.ObjectList{"StatefulSets": sets, "Pods": pods} {
		if err := r.LiveReader.List(ctx, list, here); err != nil {
			return fmt.Errorf("listing %s of namespace %s: %w", what, s.Namespace, err)
		}
	}
	var explained []corev1.Event
	lacksPods := func(set appsv1.StatefulSet) bool { return podfailure.LacksPods(&set) }
	waits := func(pod corev1.Pod) bool { return podfailure.Waits(&pod) }
	for reason, needed := range map[string]bool{
		"FailedCreate":         slices.ContainsFunc(sets.Items, lacksPods),
		podfailure.FailedMount: slices.ContainsFunc(pods.Items, waits),
	} {
		if !needed {
			continue
		}
		if err := r.LiveReader.List(ctx, events, here, client.MatchingFields{"reason": reason}); err != nil {
			return fmt.Errorf("listing Events of namespace %s: %w", s.Namespace, err)
		}
		explained = append(explained, events.Items...)
	}
	s.failures = append(s.failures, podfailure.Find(podfailure.Namespace{
		Deployments: deployments.Items, StatefulSets: sets.Items, Pods: pods.Items, Events: explained,
	}, s.Now)...)
	return nil
}

// missingKinds returns the kinds that an OpenShift payload needs and the management cluster does not serve.
func (r *Reconciler) missingKinds(s *scope) []string {
	if s.Release == nil || !s.Distribution().OwnOperators {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(monitoringKinds), func(kind string) bool {
		return cluster.Serves(r.Client, management.Monitoring, kind)
	})
}

func unavailable(d appsv1.Deployment) bool {
	return d.Status.AvailableReplicas < ptr.Deref(d.Spec.Replicas, 1)
}

// whatFails returns what keeps pods from running; empty if nothing does. If all is true, it includes containers that
// exited once.
func (s *scope) whatFails(all bool) string {
	return podfailure.Text(slices.DeleteFunc(slices.Clone(s.failures), func(f podfailure.Finding) bool { return !all && !f.Stuck }))
}

// degraded copies the condition that the control plane reports, and adds the pods that do not run.
func degraded(reported []metav1.Condition, s *scope) metav1.Condition {
	conditionType := string(hyperv1.HostedClusterDegraded)
	c := condition.Copy(reported, conditionType, hyperv1.StatusUnknownReason)
	why := s.whatFails(false)
	switch {
	case why == "":
		return c
	case c.Status == metav1.ConditionTrue:
		return condition.True(conditionType, c.Reason, sentences(c.Message, why))
	default:
		return condition.True(conditionType, hyperv1.ControlPlanePodsFailingReason, why)
	}
}

// sentences joins two texts, either of which may be empty.
func sentences(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return strings.TrimSuffix(first, ".") + ". " + second
}
