// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// node sets the Ready condition of a machine's Node, which changed some time ago.
func (s *world) node(name string, status metav1.ConditionStatus, since time.Duration) {
	s.t.Helper()
	m := look(s, &clusterv1.Machine{}, name)
	meta.RemoveStatusCondition(&m.Status.Conditions, clusterv1.MachineNodeReadyCondition)
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: status, Reason: "NodeNotReady",
		LastTransitionTime: metav1.NewTime(s.clock.Now().Add(-since))})
	s.Expect(s.client.Status().Update(s.t.Context(), m)).To(Succeed())
}

// reports sets a condition of the HostedCluster.
func (s *world) reports(conditionType string, status metav1.ConditionStatus) {
	s.t.Helper()
	s.cluster(func(hc *hyperv1.HostedCluster) {
		meta.SetStatusCondition(&hc.Status.Conditions, metav1.Condition{Type: conditionType, Status: status, Reason: "Told"})
	})
}

// permitted reconciles, and returns the machines that the health check may replace.
func (s *world) permitted() (names []string) {
	s.t.Helper()
	s.mustPass()
	check, machines := s.healthCheck(), &clusterv1.MachineList{}
	s.Expect(s.client.List(s.t.Context(), machines, client.InNamespace(s.hosted()), client.MatchingLabels(check.Spec.Selector.MatchLabels))).To(Succeed())
	for i := range machines.Items {
		names = append(names, machines.Items[i].Name)
	}
	return names
}

// saysOfRepair returns the status and the reason of the condition that reports a repair; empty without a condition.
func (s *world) saysOfRepair() string {
	s.t.Helper()
	if c := scope.Find(s.pool().Status.Conditions, hyperv1.NodePoolRepairAllowedConditionType); c != nil {
		return string(c.Status) + " " + c.Reason
	}
	return ""
}

// TestRepairIsHeldBack checks that Cluster API's health check selects a machine only if the machine's failure is its
// own.
func TestRepairIsHeldBack(t *testing.T) {
	s := newWorld(t, fixture.Start(t), "repair-gate")
	s.start(nil)
	s.reports("Available", metav1.ConditionTrue)
	for _, name := range []string{"a", "b", "c"} {
		s.born(name)
	}
	s.reach()
	s.Expect(s.permitted()).To(BeEmpty())
	s.Expect(s.saysOfRepair()).To(BeEmpty())

	s.node("a", metav1.ConditionFalse, time.Hour)
	s.Expect(s.permitted()).To(Equal([]string{"a"}), "it fails alone")
	s.Expect(s.saysOfRepair()).To(Equal("True AsExpected"))
	s.Expect(s.healthCheck().Annotations[hyperv1.RepairHistoryAnnotation]).To(MatchJSON(`[{"machine": "a", "cause": "NodeNotReady", "at": "2026-11-20T12:00:00Z"}]`))

	s.node("b", metav1.ConditionUnknown, 3*time.Minute)
	s.Expect(s.permitted()).To(BeEmpty(), "two of three fail")
	s.Expect(s.saysOfRepair()).To(Equal("False TooManyUnhealthy"))
	s.Expect(s.condition("RepairAllowed").Message).To(ContainSubstring("2 of 3 machines of the pool fail at once"))
	s.Expect(s.condition("RepairAllowed").Severity).To(Equal("Warning"))

	s.node("b", metav1.ConditionTrue, 0)
	s.Expect(s.permitted()).To(Equal([]string{"a"}))
	s.reports("ControlPlaneConnectionAvailable", metav1.ConditionFalse)
	s.Expect(s.permitted()).To(BeEmpty(), "nodes do not reach the API server")
	s.Expect(s.saysOfRepair()).To(Equal("False SharedCause"))

	s.reports("ControlPlaneConnectionAvailable", metav1.ConditionTrue)
	s.Expect(s.permitted()).To(Equal([]string{"a"}))
	s.Releases = fixture.Releases{}
	s.Expect(s.permitted()).To(BeEmpty(), "a replacement could not be installed")
	s.Expect(s.condition("RepairAllowed").Message).To(ContainSubstring("ValidReleaseImage"))

	s.Releases = fixture.Payloads()
	infra := look(s, &infrav1.MaasMachine{}, "b")
	infra.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "MAASUnreachable", LastTransitionTime: metav1.Now()}}
	s.Expect(s.client.Status().Update(t.Context(), infra)).To(Succeed())
	s.Expect(s.permitted()).To(BeEmpty(), "MAAS is away")
	s.Expect(s.condition("RepairAllowed").Message).To(ContainSubstring("MAASUnreachable"))
	infra.Status.Conditions[0].Status = metav1.ConditionTrue
	s.Expect(s.client.Status().Update(t.Context(), infra)).To(Succeed())
	s.Expect(s.permitted()).To(Equal([]string{"a"}))

	s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil = ptr.To("true") })
	s.Expect(s.permitted()).To(BeEmpty())
	s.Expect(s.saysOfRepair()).To(Equal("False ReconciliationPaused"))
	s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil = nil })
	s.Expect(s.permitted()).To(Equal([]string{"a"}))

	s.bury("a")
	s.born("d")
	s.clock.Step(5 * time.Minute)
	s.node("d", metav1.ConditionFalse, 20*time.Minute)
	s.Expect(s.permitted()).To(BeEmpty(), "the repair did not help")
	s.Expect(s.saysOfRepair()).To(Equal("False RepairedRecently"))
	s.clock.Step(30 * time.Minute)
	s.Expect(s.permitted()).To(Equal([]string{"d"}))

	s.change(func(p *hyperv1.NodePool) { p.Spec.Management.AutoRepair = false })
	s.mustPass()
	s.Expect(look(s, &clusterv1.Machine{}, "d").Labels).NotTo(HaveKey(hyperv1.RepairAdmittedLabel))
	s.Expect(s.saysOfRepair()).To(BeEmpty())
}

// TestRepairAfterUpgrade checks the migration of a MachineHealthCheck of version 0.1.0, which selects all machines. No
// machine is replaced because of the migration.
func TestRepairAfterUpgrade(t *testing.T) {
	s := startInMemory(t, nil)
	s.reach()
	s.born("a")
	check := s.healthCheck()
	delete(check.Spec.Selector.MatchLabels, hyperv1.RepairAdmittedLabel)
	check.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromInt32(2))
	s.Expect(s.client.Update(t.Context(), check)).To(Succeed())
	before := s.deployment().Spec
	s.Expect(s.permitted()).To(BeEmpty())
	s.Expect(s.healthCheck().UID).To(Equal(check.UID))
	s.Expect(s.deployment().Spec).To(Equal(before))
}

func TestPermitRefused(t *testing.T) {
	s := startInMemory(t, nil)
	s.reach()
	check := s.healthCheck()
	scope.Annotate(check, hyperv1.RepairHistoryAnnotation, "[")
	s.Expect(s.client.Update(t.Context(), check)).To(Succeed())
	s.born("a")
	machine := look(s, &clusterv1.Machine{}, "a")
	metav1.SetMetaDataLabel(&machine.ObjectMeta, hyperv1.RepairAdmittedLabel, "true")
	s.Expect(s.client.Update(t.Context(), machine)).To(Succeed())
	_, err := s.pass()
	s.Expect(err).To(MatchError(ContainSubstring("remove its annotation " + hyperv1.RepairHistoryAnnotation)))
	s.Expect(look(s, &clusterv1.Machine{}, "a").Labels).NotTo(HaveKey(hyperv1.RepairAdmittedLabel))
	s.Expect(s.condition("ReconciliationSucceeded").Status).To(Equal(corev1.ConditionFalse))
}
