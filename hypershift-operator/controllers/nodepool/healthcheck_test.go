// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// TestMachineHealthCheck checks the MachineHealthCheck of a pool.
func TestMachineHealthCheck(t *testing.T) {
	s := newWorld(t, fixture.Start(t), "health-check")
	s.start(nil)
	s.Expect(s.gone(&clusterv1.MachineHealthCheck{}, ctrlKey(s.hosted(), fixture.PoolName))).To(BeTrue(), "a configuration that never worked would take machine after machine")
	s.Expect(s.condition("AutorepairEnabled").Reason).To(Equal("WaitingForFirstMachine"))

	s.reach()
	unready := func(status corev1.ConditionStatus, timeout time.Duration) clusterv1.UnhealthyNodeCondition {
		return clusterv1.UnhealthyNodeCondition{Type: corev1.NodeReady, Status: status, TimeoutSeconds: scope.Seconds(timeout)}
	}
	want := clusterv1.MachineHealthCheckSpec{
		ClusterName: "demo-abcde",
		Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"demo-abcde-demo-demo": "demo-abcde-demo-demo", hyperv1.RepairAdmittedLabel: "true"}},
		Checks: clusterv1.MachineHealthCheckChecks{
			NodeStartupTimeoutSeconds: scope.Seconds((10 + 3*60 + 20 + 15) * time.Minute),
			UnhealthyNodeConditions:   []clusterv1.UnhealthyNodeCondition{unready(corev1.ConditionFalse, 16*time.Minute), unready(corev1.ConditionUnknown, 16*time.Minute)},
			UnhealthyMachineConditions: []clusterv1.UnhealthyMachineCondition{
				{Type: "hypershift.openshift.io/Failed", Status: metav1.ConditionTrue, TimeoutSeconds: ptr.To[int32](0)},
			},
		},
		Remediation: clusterv1.MachineHealthCheckRemediation{TriggerIf: clusterv1.MachineHealthCheckRemediationTriggerIf{
			UnhealthyLessThanOrEqualTo: ptr.To(intstr.FromString("100%"))}},
	}
	s.Expect(cmp.Diff(want, s.healthCheck().Spec)).To(BeEmpty(), "-want +got")
	s.Expect(s.deployment().Spec.Template.Labels).To(HaveKeyWithValue("demo-abcde-demo-demo", "demo-abcde-demo-demo"), "it is about the machines of the pool")

	s.change(func(p *hyperv1.NodePool) {
		scope.Annotate(p, hyperv1.MachineHealthCheckTimeoutAnnotation, "5m")
		scope.Annotate(p, hyperv1.MachineHealthCheckMaxUnhealthyAnnotation, "40%")
	})
	s.mustPass()
	want.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{unready(corev1.ConditionFalse, 5*time.Minute), unready(corev1.ConditionUnknown, 5*time.Minute)}
	s.Expect(cmp.Diff(want, s.healthCheck().Spec)).To(BeEmpty(), "-want +got")
}
