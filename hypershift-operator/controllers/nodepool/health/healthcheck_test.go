// SPDX-License-Identifier: Apache-2.0

package health

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
	"github.com/openshift/hypershift/support/testenv"
)

const enabled = hyperv1.NodePoolAutorepairEnabledConditionType

// repairing returns a fixture and the scope of a pool with autoRepair.
func repairing(t *testing.T, reached metav1.ConditionStatus) (*checked, *scope.Scope) {
	t.Helper()
	w, s := fleet(t)
	s.HC.Spec.InfraID = "demo-abcde"
	s.SetCondition(metav1.Condition{Type: hyperv1.NodePoolReachedIgnitionEndpoint, Status: reached})
	return w, s
}

func TestReconcileHealthCheck(t *testing.T) {
	type outcome struct {
		exists bool
		status metav1.ConditionStatus
		reason string
	}
	bad := func(s *scope.Scope) { scope.Annotate(s.Pool, hyperv1.MachineHealthCheckTimeoutAnnotation, "soon") }
	for name, test := range map[string]struct {
		existed bool
		reached metav1.ConditionStatus
		change  func(*scope.Scope)
		want    outcome
	}{
		"When a machine has fetched its configuration, it should create the health check":      {false, metav1.ConditionTrue, func(*scope.Scope) {}, outcome{true, "True", "AsExpected"}},
		"When no machine has fetched its configuration, it should wait for the first machine":  {false, metav1.ConditionFalse, func(*scope.Scope) {}, outcome{false, "False", "WaitingForFirstMachine"}},
		"When no machine has fetched a new configuration yet, it should keep the health check": {true, metav1.ConditionFalse, func(*scope.Scope) {}, outcome{true, "True", "AsExpected"}},
		"When a timeout is invalid, it should not create the health check":                     {false, metav1.ConditionTrue, bad, outcome{false, "False", "ValidationFailed"}},
		"When a timeout becomes invalid, it should keep the existing health check":             {true, metav1.ConditionTrue, bad, outcome{true, "True", "ValidationFailed"}},
		"When autoRepair is off, it should do nothing":                                         {false, metav1.ConditionTrue, func(s *scope.Scope) { s.Pool.Spec.Management.AutoRepair = false }, outcome{}},
		"When the platform creates no machines, it should do nothing": {false, metav1.ConditionTrue, func(s *scope.Scope) {
			s.Platform, _ = fixture.Platforms(nil).For(hyperv1.NonePlatform)
		}, outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := repairing(t, test.reached)
			test.change(s)
			if test.existed {
				fixture.Create(t, w.server, &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace(), Name: fixture.PoolName}})
			}
			result, err := w.Reconcile(t.Context())
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(result.IsZero()).To(BeTrue())
			told := s.Conditions[enabled]
			exists, err := scope.Exists(t.Context(), w.server, &clusterv1.MachineHealthCheck{ObjectMeta: s.Named()})
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(outcome{exists, told.Status, told.Reason}).To(Equal(test.want))
		})
	}
}

// TestHealthCheckRefused checks that a failed read does not count as a missing object, and that a failed write is not
// reported as done.
func TestHealthCheckRefused(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		t.Run("When the server refuses to "+verb+" the health check, it should return an error and set no condition", func(t *testing.T) {
			w, s := repairing(t, metav1.ConditionTrue)
			w.Client = testenv.Intercept(w.server, func(request testenv.Request) error {
				if request.Verb == verb {
					return testenv.ErrRefused
				}
				return request.Do()
			})
			_, err := w.Reconcile(t.Context())
			w.Expect(err).To(MatchError(testenv.ErrRefused))
			w.Expect(s.Conditions).NotTo(HaveKey(enabled))
		})
	}
	w, _ := fleet(t)
	w.Client = testenv.NewGrudging(w.server)
	found, err := scope.Exists(t.Context(), w.Client, &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "a"}})
	w.Expect(err).To(And(MatchError(testenv.ErrRefused), MatchError(ContainSubstring("clusters/a"))))
	w.Expect(found).To(BeFalse())
}

// TestHealthCheckSpec checks the complete spec of the MachineHealthCheck.
func TestHealthCheckSpec(t *testing.T) {
	w, _ := repairing(t, metav1.ConditionTrue)
	_, err := w.Reconcile(t.Context())
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
		return &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: fixture.PoolName, Finalizers: []string{"example.com/holder"}}}
	}
	w, s := repairing(t, metav1.ConditionTrue)
	fixture.Create(t, w.server, check())
	result, err := w.Stop(t.Context())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.IsZero()).To(BeTrue())
	w.Expect(s.Conditions).NotTo(HaveKey(enabled))
	w.Expect(w.healthCheck().DeletionTimestamp).To(BeNil())

	s.Pool.Spec.Management.AutoRepair = false
	for range 2 {
		result, err = w.Stop(t.Context())
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(result.RequeueAfter).To(Equal(5 * time.Second))
		w.Expect(s.Conditions[enabled]).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "AsExpected")), "as long as it is there, machines are replaced")
	}
	going := w.healthCheck()
	going.Finalizers = nil
	w.Expect(w.server.Update(t.Context(), going)).To(Succeed())
	result, err = w.Stop(t.Context())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.IsZero()).To(BeTrue())
	w.Expect(s.Conditions[enabled]).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "AsExpected")))
}

// TestMaxUnhealthy checks that the annotation accepts a number, or an integer percentage of all machines.
func TestMaxUnhealthy(t *testing.T) {
	for text, ok := range map[string]bool{"0": true, "1": true, "100%": true, "33%": true, "a%": false, "%": false, "two": false} {
		_, s := repairing(t, metav1.ConditionTrue)
		scope.Annotate(s.HC, hyperv1.MachineHealthCheckMaxUnhealthyAnnotation, text)
		_, err := Check{Scope: s}.healthChecks()
		NewWithT(t).Expect(err == nil).To(Equal(ok), text)
	}
}

func TestDurationOfAnnotation(t *testing.T) {
	const annotation = hyperv1.MachineHealthCheckTimeoutAnnotation
	for name, tc := range map[string]struct {
		pool, cluster string
		want          time.Duration
		refused       string
	}{
		"When no annotation is set, it should use the platform's duration":                                 {want: time.Hour},
		"When the cluster sets a duration, it should use that duration":                                    {cluster: "90m", want: 90 * time.Minute},
		"When the NodePool sets a duration, it should take precedence over the cluster's":                  {pool: "5m", cluster: "90m", want: 5 * time.Minute},
		"When the duration is the shortest possible, it should be accepted":                                {pool: "1ns", want: 1},
		"When the duration is zero, it should be rejected":                                                 {pool: "0s", refused: `"0s": write a duration such as 90m`},
		"When the duration is negative, it should be rejected":                                             {pool: "-5m", refused: `"-5m": write a duration such as 90m`},
		"When the duration is a number without a unit, it should be rejected":                              {cluster: "90", refused: `"90": write a duration such as 90m`},
		"When the cluster's duration is invalid and the NodePool's is valid, it should use the NodePool's": {pool: "5m", cluster: "soon", want: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &scope.Scope{Pool: &hyperv1.NodePool{}, HC: &hyperv1.HostedCluster{}}
			s.Pool.Annotations, s.HC.Annotations = map[string]string{annotation: tc.pool}, map[string]string{annotation: tc.cluster}
			got, err := Check{Scope: s}.duration(annotation, time.Hour)
			if tc.refused != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring(annotation), ContainSubstring(tc.refused))))
				g.Expect(got).To(BeZero())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestHealthChecks(t *testing.T) {
	for _, tc := range []struct {
		name, annotation, value, failure string
	}{
		{"When maxUnhealthy is a percentage, it should be accepted", hyperv1.MachineHealthCheckMaxUnhealthyAnnotation, "40%", ""},
		{"When maxUnhealthy is invalid, it should report the accepted format", hyperv1.MachineHealthCheckMaxUnhealthyAnnotation, "some", "a number of machines such as 2"},
		{"When a duration is invalid, it should report the accepted format", hyperv1.MachineHealthCheckTimeoutAnnotation, "soon", "a duration such as 90m"},
		{"When a duration is negative, it should be rejected", hyperv1.MachineHealthCheckNodeStartupTimeoutAnnotation, "-1h", "a duration such as 90m"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			_, s := fleet(t)
			s.Pool.Annotations = map[string]string{tc.annotation: tc.value}
			_, err := Check{Scope: s}.healthChecks()
			if tc.failure != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring(tc.annotation), ContainSubstring(tc.failure))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}
