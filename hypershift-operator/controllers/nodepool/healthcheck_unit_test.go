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
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

const enabled = hyperv1.NodePoolAutorepairEnabledConditionType

// repairing returns a scope of a pool with autoRepair.
func repairing(reached metav1.ConditionStatus) *scope {
	s := configured(func(*scope) {})
	s.hc.Spec.InfraID = "demo-abcde"
	s.setCondition(metav1.Condition{Type: hyperv1.NodePoolReachedIgnitionEndpoint, Status: reached})
	return s
}

func TestReconcileHealthCheck(t *testing.T) {
	type outcome struct {
		exists bool
		status metav1.ConditionStatus
		reason string
	}
	bad := func(s *scope) { annotate(s.pool, hyperv1.MachineHealthCheckTimeoutAnnotation, "soon") }
	for name, test := range map[string]struct {
		existed bool
		reached metav1.ConditionStatus
		change  func(*scope)
		want    outcome
	}{
		"When a machine has fetched its configuration, it should create the health check":      {false, metav1.ConditionTrue, func(*scope) {}, outcome{true, "True", "AsExpected"}},
		"When no machine has fetched its configuration, it should wait for the first machine":  {false, metav1.ConditionFalse, func(*scope) {}, outcome{false, "False", "WaitingForFirstMachine"}},
		"When no machine has fetched a new configuration yet, it should keep the health check": {true, metav1.ConditionFalse, func(*scope) {}, outcome{true, "True", "AsExpected"}},
		"When a timeout is invalid, it should not create the health check":                     {false, metav1.ConditionTrue, bad, outcome{false, "False", "ValidationFailed"}},
		"When a timeout becomes invalid, it should keep the existing health check":             {true, metav1.ConditionTrue, bad, outcome{true, "True", "ValidationFailed"}},
		"When autoRepair is off, it should do nothing":                                         {false, metav1.ConditionTrue, func(s *scope) { s.pool.Spec.Management.AutoRepair = false }, outcome{}},
		"When the platform creates no machines, it should do nothing": {false, metav1.ConditionTrue, func(s *scope) {
			s.platform, _ = fixture.Platforms(nil).For(hyperv1.NonePlatform)
		}, outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := inMemory(t), repairing(test.reached)
			test.change(s)
			if test.existed {
				fixture.Create(t, w.client, &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: w.hosted(), Name: fixture.PoolName}})
			}
			result, err := w.reconcileHealthCheck(t.Context(), s)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(result.IsZero()).To(BeTrue())
			told := s.conditions[enabled]
			w.Expect(outcome{!w.gone(&clusterv1.MachineHealthCheck{}, ctrlKey(w.hosted(), fixture.PoolName)), told.Status, told.Reason}).To(Equal(test.want))
		})
	}
}

// TestHealthCheckRefused checks that a failed read does not count as a missing object, and that a failed write is not
// reported as done.
func TestHealthCheckRefused(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		t.Run("When the server refuses to "+verb+" the health check, it should return an error and set no condition", func(t *testing.T) {
			w, s := inMemory(t), repairing(metav1.ConditionTrue)
			w.Reconciler.Client = testenv.Intercept(w.client, func(request testenv.Request) error {
				if request.Verb == verb {
					return testenv.ErrRefused
				}
				return request.Do()
			})
			_, err := w.reconcileHealthCheck(t.Context(), s)
			w.Expect(err).To(MatchError(testenv.ErrRefused))
			w.Expect(s.conditions).NotTo(HaveKey(enabled))
		})
	}
	w := inMemory(t)
	w.Reconciler.Client = testenv.NewGrudging(w.client)
	found, err := w.exists(t.Context(), &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "a"}})
	w.Expect(err).To(And(MatchError(testenv.ErrRefused), MatchError(ContainSubstring("clusters/a"))))
	w.Expect(found).To(BeFalse())
}

// TestHealthCheckSpec checks the complete spec of the MachineHealthCheck.
func TestHealthCheckSpec(t *testing.T) {
	w, s := inMemory(t), repairing(metav1.ConditionTrue)
	_, err := w.reconcileHealthCheck(t.Context(), s)
	w.Expect(err).NotTo(HaveOccurred())
	unready := func(status corev1.ConditionStatus) clusterv1.UnhealthyNodeCondition {
		return clusterv1.UnhealthyNodeCondition{Type: corev1.NodeReady, Status: status, TimeoutSeconds: ptr.To[int32](16 * 60)}
	}
	want := clusterv1.MachineHealthCheckSpec{
		ClusterName: "demo-abcde",
		Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"demo-abcde-demo-demo": "demo-abcde-demo-demo", hyperv1.RepairAdmittedLabel: "true"}},
		Checks: clusterv1.MachineHealthCheckChecks{
			NodeStartupTimeoutSeconds: ptr.To[int32]((10 + 3*60 + 20 + 15) * 60),
			UnhealthyNodeConditions:   []clusterv1.UnhealthyNodeCondition{unready(corev1.ConditionFalse), unready(corev1.ConditionUnknown)},
			UnhealthyMachineConditions: []clusterv1.UnhealthyMachineCondition{
				{Type: "hypershift.openshift.io/Failed", Status: metav1.ConditionTrue, TimeoutSeconds: ptr.To[int32](0)},
			},
		},
		Remediation: clusterv1.MachineHealthCheckRemediation{TriggerIf: clusterv1.MachineHealthCheckRemediationTriggerIf{
			UnhealthyLessThanOrEqualTo: ptr.To(intstr.FromString("100%"))}},
	}
	w.Expect(cmp.Diff(want, w.healthCheck().Spec)).To(BeEmpty(), "-want +got")
	w.Expect(w.healthCheck().Annotations).To(Equal(map[string]string{hyperv1.NodePoolAnnotation: "clusters/demo"}))
}

func TestStopHealthCheck(t *testing.T) {
	check := func() *clusterv1.MachineHealthCheck {
		return &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: fixture.PoolName, Finalizers: []string{holder}}}
	}
	w, s := inMemory(t), repairing(metav1.ConditionTrue)
	fixture.Create(t, w.client, check())
	result, err := w.stopHealthCheck(t.Context(), s)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.IsZero()).To(BeTrue())
	w.Expect(s.conditions).NotTo(HaveKey(enabled))
	w.Expect(w.healthCheck().DeletionTimestamp).To(BeNil())

	s.pool.Spec.Management.AutoRepair = false
	for range 2 {
		result, err = w.stopHealthCheck(t.Context(), s)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(result.RequeueAfter).To(Equal(5 * time.Second))
		w.Expect(s.conditions[enabled]).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "AsExpected")), "as long as it is there, machines are replaced")
	}
	going := w.healthCheck()
	going.Finalizers = nil
	w.Expect(w.client.Update(t.Context(), going)).To(Succeed())
	result, err = w.stopHealthCheck(t.Context(), s)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.IsZero()).To(BeTrue())
	w.Expect(s.conditions[enabled]).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "AsExpected")))
}

// TestMaxUnhealthy checks that the annotation accepts a number, or an integer percentage of all machines.
func TestMaxUnhealthy(t *testing.T) {
	for text, ok := range map[string]bool{"0": true, "1": true, "100%": true, "33%": true, "a%": false, "%": false, "two": false} {
		s := repairing(metav1.ConditionTrue)
		annotate(s.hc, hyperv1.MachineHealthCheckMaxUnhealthyAnnotation, text)
		_, err := s.healthChecks()
		NewWithT(t).Expect(err == nil).To(Equal(ok), text)
	}
}
