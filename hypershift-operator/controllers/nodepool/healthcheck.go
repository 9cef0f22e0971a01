// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/upsert"
)

const defaultMaxUnhealthy = "2"

// stopHealthCheck deletes the health check when autoRepair is off, whatever else is wrong with the pool. As long as the
// health check exists, it replaces machines.
func (r *Reconciler) stopHealthCheck(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.pool.Spec.Management.AutoRepair {
		return ctrl.Result{}, nil // The health check phase reports whether repair works.
	}
	conditionType := hyperv1.NodePoolAutorepairEnabledConditionType
	gone, err := r.deleteOne(ctx, s, &clusterv1.MachineHealthCheck{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if !gone {
		s.accept(conditionType, "The MachineHealthCheck, which replaces machines that fail, is being deleted")
		return ctrl.Result{RequeueAfter: deletionPoll}, nil
	}
	s.reject(conditionType, hyperv1.AsExpectedReason, "Machines that fail are not replaced: spec.management.autoRepair is off")
	return ctrl.Result{}, nil
}

// reconcileHealthCheck lets Cluster API replace failing machines, once a machine has shown that the configuration
// works. An existing health check remains active, and is reported as such, while the configuration changes.
func (r *Reconciler) reconcileHealthCheck(ctx context.Context, s *scope) (ctrl.Result, error) {
	mhc := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(), Name: s.pool.Name}}
	if !s.pool.Spec.Management.AutoRepair || s.platform.MachineTemplates() == nil {
		return ctrl.Result{}, nil
	}
	existed, err := r.exists(ctx, mhc)
	if err != nil {
		return ctrl.Result{}, err
	}
	conditionType := hyperv1.NodePoolAutorepairEnabledConditionType
	if !existed && s.conditions[hyperv1.NodePoolReachedIgnitionEndpoint].Status != metav1.ConditionTrue {
		s.reject(conditionType, "WaitingForFirstMachine", "Machines are replaced when they fail as soon as one has fetched its configuration")
		return ctrl.Result{}, nil
	}
	checks, invalid := s.healthChecks()
	if invalid != nil && !existed {
		s.reject(conditionType, hyperv1.NodePoolValidationFailedReason, invalid.Error())
		return ctrl.Result{}, nil
	}
	_, err = upsert.Object(ctx, r.Client, mhc, func() error {
		annotate(mhc, hyperv1.NodePoolAnnotation, s.key())
		mhc.Spec.ClusterName = s.hc.Spec.InfraID
		// The health check selects only the machine that admitRepair labels. decideRepair enforces the limit that the
		// annotation sets.
		mhc.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{
			s.resourcesName(): s.resourcesName(), hyperv1.RepairAdmittedLabel: admitted}}
		mhc.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromString("100%"))
		if invalid == nil {
			mhc.Spec.Checks = checks
		}
		return nil
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	s.accept(conditionType, "Machines that fail are replaced")
	if invalid != nil {
		s.setCondition(condition.True(conditionType, hyperv1.NodePoolValidationFailedReason, "Machines that fail are replaced as before: "+invalid.Error()))
	}
	return r.admitRepair(ctx, s, mhc)
}

// exists reads an object and reports whether it exists.
func (r *Reconciler) exists(ctx context.Context, obj client.Object) (bool, error) {
	key := client.ObjectKeyFromObject(obj)
	err := r.Client.Get(ctx, key, obj)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %T %s: %w", obj, key, err)
	}
	return err == nil, nil
}

// healthChecks returns the platform's timeouts unless an annotation on the pool, or else on the cluster, overrides
// them. A machine that the platform reports as failed is unhealthy without delay.
func (s *scope) healthChecks() (clusterv1.MachineHealthCheckChecks, error) {
	unready, err := s.duration(hyperv1.MachineHealthCheckTimeoutAnnotation, s.traits().HealthCheck.NodeUnready)
	if err != nil {
		return clusterv1.MachineHealthCheckChecks{}, err
	}
	if _, err := s.nodeStartupOverride(); err != nil {
		return clusterv1.MachineHealthCheckChecks{}, err
	}
	maximum := intstr.Parse(cmp.Or(s.override(hyperv1.MachineHealthCheckMaxUnhealthyAnnotation), defaultMaxUnhealthy))
	if _, err := intstr.GetScaledValueFromIntOrPercent(&maximum, 100, false); err != nil {
		return clusterv1.MachineHealthCheckChecks{}, fmt.Errorf("annotation %s is %q: write a number of machines such as 2, or a share such as 40%%",
			hyperv1.MachineHealthCheckMaxUnhealthyAnnotation, maximum.String())
	}
	unhealthy := func(status corev1.ConditionStatus) clusterv1.UnhealthyNodeCondition {
		return clusterv1.UnhealthyNodeCondition{Type: corev1.NodeReady, Status: status, TimeoutSeconds: wholeSeconds(unready)}
	}
	return clusterv1.MachineHealthCheckChecks{
		NodeStartupTimeoutSeconds: wholeSeconds(s.nodeStartup()),
		UnhealthyNodeConditions:   []clusterv1.UnhealthyNodeCondition{unhealthy(corev1.ConditionFalse), unhealthy(corev1.ConditionUnknown)},
		UnhealthyMachineConditions: []clusterv1.UnhealthyMachineCondition{
			{Type: failedCondition, Status: metav1.ConditionTrue, TimeoutSeconds: ptr.To[int32](0)},
		},
	}, nil
}

// wholeSeconds returns a duration in seconds, limited to the maximum of the API type, which is 68 years.
func wholeSeconds(d time.Duration) *int32 {
	return ptr.To(int32(min(d.Seconds(), math.MaxInt32)))
}

// nodeStartupOverride returns the value of the annotation; zero if it is not set.
func (s *scope) nodeStartupOverride() (time.Duration, error) {
	return s.duration(hyperv1.MachineHealthCheckNodeStartupTimeoutAnnotation, 0)
}

func (s *scope) override(annotation string) string {
	return cmp.Or(s.pool.Annotations[annotation], s.hc.Annotations[annotation])
}

func (s *scope) duration(annotation string, otherwise time.Duration) (time.Duration, error) {
	text := s.override(annotation)
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("annotation %s is %q: write a duration such as 90m", annotation, text)
	}
	return d, nil
}
