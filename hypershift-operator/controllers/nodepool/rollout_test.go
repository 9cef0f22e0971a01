// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// totals sets the status of a MachineDeployment before Cluster API has observed a new template.
func (s *world) totals(count int32) {
	s.t.Helper()
	md := s.deployment()
	md.Status.ObservedGeneration = md.Generation
	for _, total := range []**int32{&md.Status.Replicas, &md.Status.UpToDateReplicas, &md.Status.AvailableReplicas, &md.Status.ReadyReplicas} {
		*total = ptr.To(count)
	}
	s.Expect(s.client.Status().Update(s.t.Context(), md)).To(Succeed())
}

// settle reconciles a pool of two machines until all have its first release.
func (s *world) settle() {
	s.t.Helper()
	s.start(nil)
	s.born("a")
	s.born("b")
	s.totals(2)
	s.mustPass()
	s.Expect(s.pool().Status.Version).To(Equal("1.36.3"))
}

func (s *world) updates(conditionType string, message string) {
	s.t.Helper()
	c := s.condition(conditionType)
	s.Expect(c.Status).To(Equal(corev1.ConditionTrue), conditionType)
	s.Expect(c.Message).To(ContainSubstring(message))
}

func (s *world) rests() {
	s.t.Helper()
	for _, conditionType := range []string{"UpdatingVersion", "UpdatingConfig", "UpdatingPlatformMachineTemplate"} {
		s.Expect(s.condition(conditionType).Status).To(Equal(corev1.ConditionFalse), conditionType)
	}
}

func TestRollout(t *testing.T) {
	c := fixture.Start(t)

	t.Run("When a machine of the old release remains, the pool should not report the new one, whatever the totals are", func(t *testing.T) {
		s := newWorld(t, c, "roll-release")
		s.Releases = laterPayloads()
		s.settle()
		before := s.pool().Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
		s.cluster(func(hc *hyperv1.HostedCluster) { hc.Status.Version = completed("1.36.4") })
		s.change(func(p *hyperv1.NodePool) { p.Spec.Release.Image = laterImage })
		s.mustPass()
		s.totals(2)
		s.mustPass()
		s.updates("UpdatingVersion", "2 of 2 machines are to be replaced")
		s.Expect(s.pool().Status.Version).To(Equal("1.36.3"))
		s.Expect(s.pool().Annotations).To(HaveKeyWithValue(hyperv1.NodePoolCurrentConfigVersionAnnotation, before))

		s.bury("a")
		s.born("a2")
		s.mustPass()
		s.updates("UpdatingVersion", "1 of 2 machines are to be replaced")

		s.born("b2")
		last := look(s, &clusterv1.Machine{}, "b")
		last.Finalizers = []string{"test/drains"}
		s.Expect(c.Update(t.Context(), last)).To(Succeed())
		s.bury("b")
		s.mustPass()
		s.updates("UpdatingVersion", "1 of 3 machines are to be replaced")

		last = look(s, last, "b")
		last.Finalizers = nil
		s.Expect(c.Update(t.Context(), last)).To(Succeed())
		s.mustPass()
		s.rests()
		s.Expect(s.pool().Status.Version).To(Equal("1.36.4"))
		s.Expect(s.pool().Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]).NotTo(Equal(before))
	})

	t.Run("When new machines have no node yet, the pool should not report the new release", func(t *testing.T) {
		s := newWorld(t, c, "roll-nodeless")
		s.Releases = laterPayloads()
		s.settle()
		s.cluster(func(hc *hyperv1.HostedCluster) { hc.Status.Version = completed("1.36.4") })
		s.change(func(p *hyperv1.NodePool) { p.Spec.Release.Image = laterImage })
		s.mustPass()
		s.bury("a", "b")
		fresh := []*clusterv1.Machine{s.birth("a2"), s.birth("b2")}
		s.totals(2)
		s.mustPass()
		s.updates("UpdatingVersion", "to version 1.36.4")
		s.Expect(s.condition("Ready").Message).To(HavePrefix("0 of 2 machines are available"))
		s.serve(fresh[0])
		s.serve(fresh[1])
		s.mustPass()
		s.rests()
	})

	t.Run("When a machine has the wrong size, the pool should report the update until it is replaced", func(t *testing.T) {
		s := newWorld(t, c, "roll-template")
		s.settle()
		s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS.MinCPU = ptr.To[int32](8) })
		s.mustPass()
		s.totals(2)
		s.mustPass()
		s.updates("UpdatingPlatformMachineTemplate", "Replacing machines by those of template")
		s.bury("a", "b")
		s.born("a2")
		s.born("b2")
		s.mustPass()
		s.rests()
	})

	t.Run("When the pool is only scaled up, it should not report an update", func(t *testing.T) {
		s := newWorld(t, c, "roll-grow")
		s.settle()
		s.change(func(p *hyperv1.NodePool) { p.Spec.Replicas = ptr.To[int32](3) })
		s.mustPass()
		s.birth("c")
		s.mustPass()
		s.rests()
		s.Expect(s.condition("Ready").Status).To(Equal(corev1.ConditionFalse))
	})

	t.Run("When a node is lost while the release cannot be read, the pool should still report it", func(t *testing.T) {
		s := newWorld(t, c, "roll-blind")
		s.settle()
		s.Releases = fixture.Releases{}
		s.bury("a")
		s.mustPass()
		s.Expect(s.condition("Ready").Message).To(HavePrefix("1 of 2 machines are available"))
		s.Expect(s.pool().Status.Replicas).To(BeEquivalentTo(1))
	})

	t.Run("When the release waits for the control plane, it should keep the template and still scale", func(t *testing.T) {
		s := newWorld(t, c, "roll-early")
		s.Releases = laterPayloads()
		s.settle()
		before := s.deployment().Spec.Template
		s.cluster(func(hc *hyperv1.HostedCluster) { hc.Status.Version = onTheWay("1.36.4", "1.36.3") })
		s.change(func(p *hyperv1.NodePool) { p.Spec.Release.Image, p.Spec.Replicas = laterImage, ptr.To[int32](3) })
		s.mustPass()
		s.Expect(s.condition("ValidReleaseImage").Status).To(Equal(corev1.ConditionFalse))
		s.Expect(s.deployment().Spec.Template).To(Equal(before))
		s.Expect(s.deployment().Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		s.Expect(s.condition("Ready").Message).To(HavePrefix("2 of 3 machines are available"))

		s.cluster(func(hc *hyperv1.HostedCluster) { hc.Status.Version = completed("1.36.4") })
		s.mustPass()
		s.Expect(s.condition("ValidReleaseImage").Status).To(Equal(corev1.ConditionTrue))
		s.Expect(s.deployment().Spec.Template).NotTo(Equal(before))
	})

	t.Run("When nothing changes, it should write nothing", func(t *testing.T) {
		s := newWorld(t, c, "roll-grow")
		s.mustPass()
		counted := fixture.NewFaulty(c)
		s.Reconciler.Client = counted
		s.mustPass()
		s.Expect(counted.Log).To(BeEmpty())
	})
}

func TestServes(t *testing.T) {
	older := func(status corev1.ConditionStatus) *clusterv1.Machine {
		m := machineWith("m")
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: "m"}
		m.SetV1Beta1Conditions(clusterv1.Conditions{{Type: clusterv1.ReadyV1Beta1Condition, Status: status}}) //nolint:staticcheck // as it writes them
		return m
	}
	for _, tc := range []struct {
		name    string
		machine *clusterv1.Machine
		want    bool
	}{
		{"When Cluster API has not set conditions yet, the machine should not count as available", machineWith("m"), false},
		{"When an older Cluster API reports ready, the machine should count as available", older(corev1.ConditionTrue), true},
		{"When an older Cluster API reports not ready, the machine should not count as available", older(corev1.ConditionFalse), false},
	} {
		t.Run(tc.name, func(t *testing.T) { NewWithT(t).Expect(serves(tc.machine)).To(Equal(tc.want)) })
	}
}
