package nodepool

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

const defaultMaxUnhealthy = "2"

// reconcileHealthCheck lets Cluster API replace machines that fail, once a machine has shown that the configuration works.
func (r *Reconciler) reconcileHealthCheck(ctx context.Context, s *scope) (ctrl.Result, error) {
	mhc := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(), Name: s.pool.Name}}
	if !s.pool.Spec.Management.AutoRepair || s.platform.MachineTemplates() == nil {
		_, err := upsert.Gone(ctx, r.Client, mhc)
		return ctrl.Result{}, err
	}
	conditionType := hyperv1.NodePoolAutorepairEnabledConditionType
	if s.verdicts[hyperv1.NodePoolReachedIgnitionEndpoint].Status != metav1.ConditionTrue {
		s.reject(conditionType, "WaitingForFirstMachine", "Machines are replaced when they fail as soon as one has fetched its configuration")
		return ctrl.Result{}, nil
	}
	checks, maximum, err := s.healthChecks()
	if err != nil {
		s.reject(conditionType, hyperv1.NodePoolValidationFailedReason, err.Error())
		return ctrl.Result{}, nil
	}
	_, err = upsert.Object(ctx, r.Client, mhc, func() error {
		annotate(mhc, hyperv1.NodePoolAnnotation, s.key())
		mhc.Spec.ClusterName = s.hc.Spec.InfraID
		mhc.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{s.resourcesName(): s.resourcesName()}}
		mhc.Spec.Checks = checks
		mhc.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = maximum
		return nil
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	s.accept(conditionType, "Machines that fail are replaced")
	s.judgeRemediation(mhc)
	return ctrl.Result{}, nil
}

// judgeRemediation tells when so many machines fail that replacing them would make things worse.
func (s *scope) judgeRemediation(mhc *clusterv1.MachineHealthCheck) {
	for _, c := range mhc.Status.Conditions {
		if c.Type == clusterv1.MachineHealthCheckRemediationAllowedCondition && c.Status == metav1.ConditionFalse {
			s.reject(hyperv1.NodePoolReadyConditionType, c.Reason, "Failing machines are not replaced any more: "+c.Message)
		}
	}
}

// healthChecks are the platform's time-outs, or those of annotations on the pool or else on the cluster.
func (s *scope) healthChecks() (clusterv1.MachineHealthCheckChecks, *intstr.IntOrString, error) {
	health := s.traits().HealthCheck
	unready, err := s.duration(hyperv1.MachineHealthCheckTimeoutAnnotation, health.NodeUnready)
	if err != nil {
		return clusterv1.MachineHealthCheckChecks{}, nil, err
	}
	startup, err := s.duration(hyperv1.MachineHealthCheckNodeStartupTimeoutAnnotation, health.NodeStartup)
	if err != nil {
		return clusterv1.MachineHealthCheckChecks{}, nil, err
	}
	maximum := intstr.Parse(firstOf(s.override(hyperv1.MachineHealthCheckMaxUnhealthyAnnotation), defaultMaxUnhealthy))
	if _, err := intstr.GetScaledValueFromIntOrPercent(&maximum, 100, false); err != nil {
		return clusterv1.MachineHealthCheckChecks{}, nil, fmt.Errorf("annotation %s is %q: write a number of machines such as 2, or a share such as 40%%",
			hyperv1.MachineHealthCheckMaxUnhealthyAnnotation, maximum.String())
	}
	unhealthy := func(status corev1.ConditionStatus) clusterv1.UnhealthyNodeCondition {
		return clusterv1.UnhealthyNodeCondition{Type: corev1.NodeReady, Status: status, TimeoutSeconds: ptr.To(int32(unready.Seconds()))}
	}
	return clusterv1.MachineHealthCheckChecks{
		NodeStartupTimeoutSeconds: ptr.To(int32(startup.Seconds())),
		UnhealthyNodeConditions:   []clusterv1.UnhealthyNodeCondition{unhealthy(corev1.ConditionFalse), unhealthy(corev1.ConditionUnknown)},
	}, &maximum, nil
}

func (s *scope) override(annotation string) string {
	return firstOf(s.pool.Annotations[annotation], s.hc.Annotations[annotation])
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

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
