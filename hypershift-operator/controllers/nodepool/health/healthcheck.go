// SPDX-License-Identifier: Apache-2.0

// Package health decides which machines of a NodePool failed, and lets Cluster API replace them. It maintains the
// MachineHealthCheck, limits how many repairs run at once, and monitors starting machines.
package health

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	defaultMaxUnhealthy = "2"
	// poll is the interval after which the controller checks whether a health check is gone.
	poll = 5 * time.Second
)

// Check monitors the machines of one pool, and lets Cluster API replace those that fail.
type Check struct {
	*scope.Scope
	Client client.Client
}

// Stop deletes the health check when autoRepair is off, whatever else is wrong with the pool. As long as the
// health check exists, it replaces machines.
func (h Check) Stop(ctx context.Context) (ctrl.Result, error) {
	if h.Pool.Spec.Management.AutoRepair {
		return ctrl.Result{}, nil // The health check phase reports whether repair works.
	}
	conditionType := hyperv1.NodePoolAutorepairEnabledConditionType
	gone, err := h.Delete(ctx, h.Client, &clusterv1.MachineHealthCheck{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if !gone {
		h.SetTrue(conditionType, "The MachineHealthCheck, which replaces machines that fail, is being deleted")
		return ctrl.Result{RequeueAfter: poll}, nil
	}
	h.SetFalse(conditionType, hyperv1.AsExpectedReason, "Machines that fail are not replaced: spec.management.autoRepair is off")
	return ctrl.Result{}, nil
}

// Reconcile lets Cluster API replace failing machines, once a machine has shown that the configuration
// works. An existing health check remains active, and is reported as such, while the configuration changes.
func (h Check) Reconcile(ctx context.Context) (ctrl.Result, error) {
	mhc := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace(), Name: h.Pool.Name}}
	if !h.Pool.Spec.Management.AutoRepair || h.Platform.MachineTemplates() == nil {
		return ctrl.Result{}, nil
	}
	existed, err := scope.Exists(ctx, h.Client, mhc)
	if err != nil {
		return ctrl.Result{}, err
	}
	conditionType := hyperv1.NodePoolAutorepairEnabledConditionType
	if !existed && h.Conditions[hyperv1.NodePoolReachedIgnitionEndpoint].Status != metav1.ConditionTrue {
		h.SetFalse(conditionType, "WaitingForFirstMachine", "Machines are replaced when they fail as soon as one has fetched its configuration")
		return ctrl.Result{}, nil
	}
	checks, invalid := h.healthChecks()
	if invalid != nil && !existed {
		h.SetFalse(conditionType, hyperv1.NodePoolValidationFailedReason, invalid.Error())
		return ctrl.Result{}, nil
	}
	_, err = upsert.Object(ctx, h.Client, mhc, func() error {
		scope.Annotate(mhc, hyperv1.NodePoolAnnotation, h.Key())
		mhc.Spec.ClusterName = h.HC.Spec.InfraID
		// The health check selects only the machine that admitRepair labels. decideRepair enforces the limit that the
		// annotation sets.
		mhc.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{
			h.ResourcesName(): h.ResourcesName(), hyperv1.RepairAdmittedLabel: admitted}}
		mhc.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromString("100%"))
		if invalid == nil {
			mhc.Spec.Checks = checks
		}
		return nil
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	h.SetTrue(conditionType, "Machines that fail are replaced")
	if invalid != nil {
		h.SetCondition(condition.True(conditionType, hyperv1.NodePoolValidationFailedReason, "Machines that fail are replaced as before: "+invalid.Error()))
	}
	return h.admitRepair(ctx, mhc)
}

// healthChecks returns the platform's timeouts unless an annotation on the pool, or else on the cluster, overrides
// them. A machine that the platform reports as failed is unhealthy without delay.
func (h Check) healthChecks() (clusterv1.MachineHealthCheckChecks, error) {
	unready, err := h.duration(hyperv1.MachineHealthCheckTimeoutAnnotation, h.Traits().HealthCheck.NodeUnready)
	if err != nil {
		return clusterv1.MachineHealthCheckChecks{}, err
	}
	if _, err := h.nodeStartupOverride(); err != nil {
		return clusterv1.MachineHealthCheckChecks{}, err
	}
	maximum := intstr.Parse(cmp.Or(h.override(hyperv1.MachineHealthCheckMaxUnhealthyAnnotation), defaultMaxUnhealthy))
	if _, err := intstr.GetScaledValueFromIntOrPercent(&maximum, 100, false); err != nil {
		return clusterv1.MachineHealthCheckChecks{}, fmt.Errorf("annotation %s is %q: write a number of machines such as 2, or a share such as 40%%",
			hyperv1.MachineHealthCheckMaxUnhealthyAnnotation, maximum.String())
	}
	unhealthy := func(status corev1.ConditionStatus) clusterv1.UnhealthyNodeCondition {
		return clusterv1.UnhealthyNodeCondition{Type: corev1.NodeReady, Status: status, TimeoutSeconds: scope.Seconds(unready)}
	}
	return clusterv1.MachineHealthCheckChecks{
		NodeStartupTimeoutSeconds: scope.Seconds(h.NodeStartup()),
		UnhealthyNodeConditions:   []clusterv1.UnhealthyNodeCondition{unhealthy(corev1.ConditionFalse), unhealthy(corev1.ConditionUnknown)},
		UnhealthyMachineConditions: []clusterv1.UnhealthyMachineCondition{
			{Type: failedCondition, Status: metav1.ConditionTrue, TimeoutSeconds: ptr.To[int32](0)},
		},
	}, nil
}

// nodeStartupOverride returns the value of the annotation; zero if it is not set.
func (h Check) nodeStartupOverride() (time.Duration, error) {
	return h.duration(hyperv1.MachineHealthCheckNodeStartupTimeoutAnnotation, 0)
}

func (h Check) override(annotation string) string {
	return cmp.Or(h.Pool.Annotations[annotation], h.HC.Annotations[annotation])
}

func (h Check) duration(annotation string, otherwise time.Duration) (time.Duration, error) {
	text := h.override(annotation)
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("annotation %s is %q: write a duration such as 90m", annotation, text)
	}
	return d, nil
}
