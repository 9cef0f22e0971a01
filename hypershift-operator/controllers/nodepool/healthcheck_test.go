// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"math"
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
)

// TestMachineHealthCheck checks the MachineHealthCheck of a pool.
func TestMachineHealthCheck(t *testing.T) {
	s := newWorld(t, fixture.Start(t), "health-check")
	s.start(nil)
	s.Expect(s.gone(&clusterv1.MachineHealthCheck{}, ctrlKey(s.hosted(), fixture.PoolName))).To(BeTrue(), "a configuration that never worked would take machine after machine")
	s.Expect(s.condition("AutorepairEnabled").Reason).To(Equal("WaitingForFirstMachine"))

	s.reach()
	unready := func(status corev1.ConditionStatus, timeout time.Duration) clusterv1.UnhealthyNodeCondition {
		return clusterv1.UnhealthyNodeCondition{Type: corev1.NodeReady, Status: status, TimeoutSeconds: wholeSeconds(timeout)}
	}
	want := clusterv1.MachineHealthCheckSpec{
		ClusterName: "demo-abcde",
		Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"demo-abcde-demo-demo": "demo-abcde-demo-demo", hyperv1.RepairAdmittedLabel: "true"}},
		Checks: clusterv1.MachineHealthCheckChecks{
			NodeStartupTimeoutSeconds: wholeSeconds((10 + 3*60 + 20 + 15) * time.Minute),
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
		annotate(p, hyperv1.MachineHealthCheckTimeoutAnnotation, "5m")
		annotate(p, hyperv1.MachineHealthCheckMaxUnhealthyAnnotation, "40%")
	})
	s.mustPass()
	want.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{unready(corev1.ConditionFalse, 5*time.Minute), unready(corev1.ConditionUnknown, 5*time.Minute)}
	s.Expect(cmp.Diff(want, s.healthCheck().Spec)).To(BeEmpty(), "-want +got")
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
			s := &scope{pool: &hyperv1.NodePool{}, hc: &hyperv1.HostedCluster{}}
			s.pool.Annotations, s.hc.Annotations = map[string]string{annotation: tc.pool}, map[string]string{annotation: tc.cluster}
			got, err := s.duration(annotation, time.Hour)
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

func TestWholeSeconds(t *testing.T) {
	g := NewWithT(t)
	g.Expect(wholeSeconds(90 * time.Minute)).To(HaveValue(BeEquivalentTo(5400)))
	g.Expect(wholeSeconds(100*365*24*time.Hour)).To(HaveValue(BeEquivalentTo(math.MaxInt32)), "the API has no more")
}
