// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// provider writes the status that the MAAS provider reports for a machine.
func (s *world) provider(name string, mutate func(*infrav1.MaasMachineStatus)) {
	s.t.Helper()
	infra := look(s, &infrav1.MaasMachine{}, name)
	mutate(&infra.Status)
	s.Expect(s.client.Status().Update(s.t.Context(), infra)).To(Succeed())
}

// allocated sets the status of a machine that is allocated in MAAS since the given time.
func allocated(since time.Time) func(*infrav1.MaasMachineStatus) {
	return func(status *infrav1.MaasMachineStatus) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: "MachineAllocated", Status: metav1.ConditionTrue, Reason: "MachineAllocated", LastTransitionTime: metav1.NewTime(since),
		})
	}
}

// gaveUp sets the status of a failed machine, which only a new MaasMachine can replace.
func gaveUp(status *infrav1.MaasMachineStatus) {
	status.FailureReason, status.FailureMessage = ptr.To("CreateError"), ptr.To("deployments failed on 3 machines")
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "DeployAttemptsExhausted", LastTransitionTime: metav1.Now(),
	})
}

func (s *world) skipped(name string) (value string) {
	s.t.Helper()
	return look(s, &clusterv1.Machine{}, name).Annotations[clusterv1.MachineSkipRemediationAnnotation]
}

func (s *world) failed(name string) *metav1.Condition {
	s.t.Helper()
	return meta.FindStatusCondition(look(s, &clusterv1.Machine{}, name).Status.Conditions, "hypershift.openshift.io/Failed")
}

func TestStartup(t *testing.T) {
	c := fixture.Start(t)

	t.Run("When a machine waits for capacity, it should skip remediation for as long as that takes", func(t *testing.T) {
		s := newWorld(t, c, "patience")
		s.start(nil)
		created := s.birth("a").CreationTimestamp.Time
		s.clock.SetTime(created.Add(time.Minute))
		result, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.skipped("a")).To(BeEmpty(), "a machine is about to be allocated")
		s.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<", 5*time.Minute)))
		for _, waited := range []time.Duration{6 * time.Minute, 10 * time.Hour, 10 * 24 * time.Hour} {
			s.clock.SetTime(created.Add(waited))
			s.mustPass()
			s.Expect(s.skipped("a")).To(Equal("hypershift.openshift.io/waiting-for-capacity"))
		}
	})

	t.Run("When a machine gets capacity late, it should skip remediation for the startup timeout and then check again", func(t *testing.T) {
		s := newWorld(t, c, "patience")
		late := look(s, &clusterv1.Machine{}, "a").CreationTimestamp.Add(10 * 24 * time.Hour)
		s.provider("a", allocated(late))
		s.clock.SetTime(late.Add(224 * time.Minute))
		result, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.skipped("a")).To(Equal("hypershift.openshift.io/waiting-for-capacity"))
		s.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Minute)))
		s.clock.SetTime(late.Add(226 * time.Minute))
		s.mustPass()
		s.Expect(s.skipped("a")).To(BeEmpty())
	})

	t.Run("When a user sets the skip-remediation annotation, it should keep it", func(t *testing.T) {
		s := newWorld(t, c, "patience")
		machine := look(s, &clusterv1.Machine{}, "a")
		scope.Annotate(machine, clusterv1.MachineSkipRemediationAnnotation, "")
		s.Expect(c.Update(t.Context(), machine)).To(Succeed())
		s.mustPass()
		s.Expect(look(s, machine, "a").Annotations).To(HaveKeyWithValue(clusterv1.MachineSkipRemediationAnnotation, ""))
	})

	t.Run("When the provider reports a failure, the Machine should report why and be remediated without delay", func(t *testing.T) {
		s := newWorld(t, c, "given-up")
		s.start(nil)
		s.birth("a")
		s.reach()
		s.provider("a", gaveUp)
		s.mustPass()
		failed := s.failed("a")
		s.Expect(failed).NotTo(BeNil())
		s.Expect(failed.Reason).To(Equal("DeployAttemptsExhausted"))
		s.Expect(failed.Message).To(Equal("deployments failed on 3 machines"))
		s.Expect(s.skipped("a")).To(BeEmpty())
		s.Expect(s.healthCheck().Spec.Checks.UnhealthyMachineConditions).To(ConsistOf(clusterv1.UnhealthyMachineCondition{
			Type: "hypershift.openshift.io/Failed", Status: metav1.ConditionTrue, TimeoutSeconds: ptr.To[int32](0),
		}))
		counted := fixture.NewFaulty(c)
		s.Reconciler.Client = counted
		s.mustPass()
		s.Expect(counted.Log).To(BeEmpty())
	})

	t.Run("When the provider withdraws the failure, the Machine should no longer report it", func(t *testing.T) {
		s := newWorld(t, c, "given-up")
		s.provider("a", func(status *infrav1.MaasMachineStatus) { status.FailureReason, status.FailureMessage = nil, nil })
		s.mustPass()
		s.Expect(s.failed("a").Status).To(Equal(metav1.ConditionFalse))
	})

	t.Run("When a failed machine has a healthy node, it should set the Failed condition only once the node is unhealthy", func(t *testing.T) {
		s := newWorld(t, c, "contradiction")
		s.start(nil)
		s.born("a")
		s.provider("a", gaveUp)
		s.mustPass()
		s.Expect(s.failed("a")).To(BeNil())
		machine := look(s, &clusterv1.Machine{}, "a")
		meta.SetStatusCondition(&machine.Status.Conditions, metav1.Condition{
			Type: clusterv1.MachineNodeHealthyCondition, Status: metav1.ConditionFalse, Reason: "NotReady",
		})
		s.Expect(c.Status().Update(t.Context(), machine)).To(Succeed())
		s.mustPass()
		s.Expect(s.failed("a")).NotTo(BeNil())
	})
}

// reach records that a machine has fetched the current configuration.
func (s *world) reach() {
	s.t.Helper()
	token := s.tokenOf(*s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName)
	scope.Annotate(token, hyperv1.TokenSecretIgnitionReachedAnnotation, "True")
	s.Expect(s.client.Update(s.t.Context(), token)).To(Succeed())
	s.mustPass()
}

func (s *world) healthCheck() *clusterv1.MachineHealthCheck {
	s.t.Helper()
	return look(s, &clusterv1.MachineHealthCheck{}, fixture.PoolName)
}

// TestRepair checks that the reported repair state matches the MachineHealthCheck.
func TestRepair(t *testing.T) {
	c := fixture.Start(t)

	t.Run("When timeouts are set, the health check's startup timeout should cover all attempts that they allow", func(t *testing.T) {
		s := newWorld(t, c, "repair-derived")
		s.start(func(p *hyperv1.NodePool) {
			p.Spec.Platform.MAAS.DeployTimeout = &metav1.Duration{Duration: 2 * time.Hour}
		})
		s.reach()
		s.Expect(s.healthCheck().Spec.Checks.NodeStartupTimeoutSeconds).To(HaveValue(BeEquivalentTo((10 + 3*120 + 20 + 15) * 60)))
	})

	t.Run("When the configuration changes, it should keep the health check and report auto-repair as enabled", func(t *testing.T) {
		s := newWorld(t, c, "repair-derived")
		s.Releases = laterPayloads()
		s.cluster(func(hc *hyperv1.HostedCluster) { hc.Status.Version = completed("1.36.4") })
		s.change(func(p *hyperv1.NodePool) { p.Spec.Release.Image = laterImage })
		s.mustPass()
		s.Expect(s.condition("ReachedIgnitionEndpoint").Status).To(Equal(corev1.ConditionFalse))
		s.healthCheck()
		s.Expect(s.condition("AutorepairEnabled").Status).To(Equal(corev1.ConditionTrue))
	})

	t.Run("When an annotation is invalid, it should keep the health check and report the invalid value", func(t *testing.T) {
		s := newWorld(t, c, "repair-derived")
		s.Releases = laterPayloads()
		s.change(func(p *hyperv1.NodePool) { scope.Annotate(p, hyperv1.MachineHealthCheckTimeoutAnnotation, "soon") })
		s.mustPass()
		said := s.condition("AutorepairEnabled")
		s.Expect(said.Status).To(Equal(corev1.ConditionTrue))
		s.Expect(said.Message).To(ContainSubstring("a duration such as 90m"))
	})

	t.Run("When the pool is paused, it should pause the health check", func(t *testing.T) {
		s := newWorld(t, c, "repair-derived")
		s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil = ptr.To("true") })
		s.mustPass()
		s.Expect(s.healthCheck().Annotations).To(HaveKey(clusterv1.PausedAnnotation))
		s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil = nil })
		s.mustPass()
		s.Expect(s.healthCheck().Annotations).NotTo(HaveKey(clusterv1.PausedAnnotation))
	})

	t.Run("When autoRepair is switched off while the release cannot be read, it should still delete the health check", func(t *testing.T) {
		s := newWorld(t, c, "repair-derived")
		s.Releases = fixture.Releases{}
		s.change(func(p *hyperv1.NodePool) { p.Spec.Management.AutoRepair = false })
		s.mustPass()
		s.Expect(s.condition("AutorepairEnabled").Status).To(Equal(corev1.ConditionFalse))
		s.Expect(s.gone(&clusterv1.MachineHealthCheck{}, client.ObjectKey{Namespace: s.hosted(), Name: fixture.PoolName})).To(BeTrue())
	})
}
