// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
)

// TestHeld checks that the machines of a pool change only while its configuration is rendered, and that its Secrets
// stay until then.
func TestHeld(t *testing.T) {
	kind := hyperv1.NodePoolValidGeneratedPayloadConditionType
	g, s, r := NewWithT(t), pass(), on(nil, &corev1.Secret{ObjectMeta: inHosted("token-demo-old", hyperv1.NodePoolAnnotation, "clusters/demo")})
	for _, c := range []metav1.Condition{{}, condition.Unknown(kind, "R", ""), condition.False(kind, "R", "")} {
		s.SetCondition(c)
		g.Expect(s.held()).To(BeTrue(), string(c.Status))
		result, err := r.retireTokens(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.IsZero()).To(BeTrue())
		g.Expect(read(t, r, &corev1.Secret{}, "token-demo-old").Annotations).To(HaveLen(1))
	}
	s.SetTrue(kind, "")
	g.Expect(s.held()).To(BeFalse())
}

// holding returns a scope that creates no machine, because its configuration could not be rendered.
func holding(kind hyperv1.UpgradeType) *reconciliation {
	s := onMAAS(pass())
	s.HC.Spec.InfraID = "demo-abcde"
	s.Pool.Spec.Management = hyperv1.NodePoolManagement{UpgradeType: kind, Replace: &hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyOnDelete}}
	s.SetCondition(condition.False(hyperv1.NodePoolValidGeneratedPayloadConditionType, "InvalidConfig", "no such unit"))
	s.SetCondition(condition.True(hyperv1.NodePoolUpdatingConfigConditionType, "AsExpected", "Updating"))
	s.SetCondition(condition.True(hyperv1.NodePoolUpdatingVersionConditionType, "AsExpected", "Updating"))
	return s
}

func TestHoldSet(t *testing.T) {
	const ready = hyperv1.NodePoolReadyConditionType
	makers := func() (*clusterv1.MachineDeployment, *clusterv1.MachineSet) {
		md, ms := &clusterv1.MachineDeployment{ObjectMeta: inHosted("demo")}, &clusterv1.MachineSet{ObjectMeta: inHosted("demo")}
		md.Spec.Replicas, ms.Spec.Replicas = ptr.To[int32](5), ptr.To[int32](5)
		md.Spec.Template.Spec.Version, ms.Spec.Template.Spec.Version = "old", "old"
		md.Status.Conditions = []metav1.Condition{condition.False(clusterv1.MachineDeploymentAvailableCondition, "R", "the deployment waits")}
		ms.Status.Conditions = []metav1.Condition{condition.False(clusterv1.MachineSetMachinesReadyCondition, "R", "the set waits")}
		return md, ms
	}
	t.Run("When machines are replaced, it should scale the MachineDeployment and keep its template", func(t *testing.T) {
		g, s := NewWithT(t), holding(hyperv1.UpgradeTypeReplace)
		md, ms := makers()
		r := on(nil, md, ms)
		g.Expect(r.holdUngenerated(t.Context(), s)).To(Succeed())
		got := read(t, r, &clusterv1.MachineDeployment{}, "demo")
		g.Expect(got.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
		g.Expect(got.Spec.Rollout.Strategy.Type).To(Equal(clusterv1.OnDeleteMachineDeploymentStrategyType))
		g.Expect(got.Spec.Template.Spec.Version).To(Equal("old"))
		g.Expect(got.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "demo-abcde"))
		g.Expect(got.Annotations).To(HaveKeyWithValue(hyperv1.NodePoolAnnotation, "clusters/demo"))
		g.Expect(s.says(ready)).To(Equal("False/WaitingForMachines: 0 of 2 machines are available. the deployment waits"))
		g.Expect(read(t, r, &clusterv1.MachineSet{}, "demo").Spec.Replicas).To(HaveValue(BeEquivalentTo(5)), "it is not the pool's")
		for _, kind := range updatingConditions {
			g.Expect(s.says(kind)).To(And(HavePrefix("True/AsExpected: Updating. "), HaveSuffix(" no such unit")), kind)
		}
	})
	t.Run("When machines are updated in place, it should scale the MachineSet and keep its template", func(t *testing.T) {
		g, s := NewWithT(t), holding(hyperv1.UpgradeTypeInPlace)
		md, ms := makers()
		r := on(nil, md, ms)
		g.Expect(r.holdUngenerated(t.Context(), s)).To(Succeed())
		got := read(t, r, &clusterv1.MachineSet{}, "demo")
		g.Expect(got.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
		g.Expect(got.Spec.Template.Spec.Version).To(Equal("old"))
		g.Expect(s.says(ready)).To(Equal("False/WaitingForMachines: 0 of 2 machines are available. the set waits"))
		g.Expect(read(t, r, &clusterv1.MachineDeployment{}, "demo").Spec.Replicas).To(HaveValue(BeEquivalentTo(5)), "it is not the pool's")
	})
	t.Run("When the pool has no MachineDeployment or MachineSet, it should report why", func(t *testing.T) {
		for _, kind := range []hyperv1.UpgradeType{hyperv1.UpgradeTypeInPlace, hyperv1.UpgradeTypeReplace} {
			g, s := NewWithT(t), holding(kind)
			g.Expect(on(nil).holdUngenerated(t.Context(), s)).To(Succeed())
			g.Expect(s.says(ready)).To(And(HavePrefix("False/InvalidConfig: "), HaveSuffix(" no such unit")))
		}
	})
	t.Run("When the user brings the machines, it should not report Ready", func(t *testing.T) {
		g, s := NewWithT(t), holding(hyperv1.UpgradeTypeReplace)
		s.Platform = none.Platform{}
		g.Expect(on(nil).holdUngenerated(t.Context(), s)).To(Succeed())
		g.Expect(s.says(ready)).To(BeEmpty())
	})
}

func TestHoldRefused(t *testing.T) {
	for refused, kind := range map[string]hyperv1.UpgradeType{
		"get MachineDeployment": hyperv1.UpgradeTypeReplace, "patch MachineDeployment": hyperv1.UpgradeTypeReplace,
		"get MachineSet": hyperv1.UpgradeTypeInPlace, "patch MachineSet": hyperv1.UpgradeTypeInPlace,
	} {
		t.Run("When "+refused+" is refused, it should return the error", func(t *testing.T) {
			g, r := NewWithT(t), on(refusals{refused}, makers()...)
			g.Expect(r.holdUngenerated(t.Context(), holding(kind))).To(MatchError(errRefused))
			g.Expect(r.stopHolding(t.Context(), holding(kind), "R", "why")).To(And(MatchError(errRefused), Not(MatchError(phase.ErrStop))))
		})
	}
}

func TestStopHolding(t *testing.T) {
	g, s := NewWithT(t), holding(hyperv1.UpgradeTypeReplace)
	g.Expect(on(nil).stopHolding(t.Context(), s, "R", "why")).To(MatchError(phase.ErrStop))
	g.Expect(s.says(hyperv1.NodePoolReadyConditionType)).To(And(HavePrefix("False/R: "), HaveSuffix(" why")))
}

func TestTellHeld(t *testing.T) {
	g, s := NewWithT(t), pass()
	s.SetCondition(condition.False(hyperv1.NodePoolUpdatingConfigConditionType, "R", "it does not"))
	s.tellHeld("why")
	g.Expect(s.says(hyperv1.NodePoolUpdatingConfigConditionType)).To(Equal("False/R: it does not"))
	g.Expect(s.Conditions).To(HaveLen(1), "what is not known is not told")
}
