// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestRolloutStrategy(t *testing.T) {
	surge, unavailable := intstr.FromInt32(3), intstr.FromString("25%")
	limits := &hyperv1.RollingUpdate{MaxSurge: &surge, MaxUnavailable: &unavailable}
	for _, tc := range []struct {
		name string
		pool hyperv1.ReplaceUpgrade
		want clusterv1.MachineDeploymentRolloutStrategy
	}{
		{"When a rolling update has limits, it should write both", hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyRollingUpdate, RollingUpdate: limits},
			clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: &surge, MaxUnavailable: &unavailable}}},
		{"When a rolling update has no limits, it should leave them to Cluster API", hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyRollingUpdate},
			clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.RollingUpdateMachineDeploymentStrategyType}},
		{"When machines are replaced by hand, it should write no limits", hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyOnDelete, RollingUpdate: limits},
			clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}},
	} {
		t.Run(tc.name, func(t *testing.T) { NewWithT(t).Expect(rolloutStrategy(&tc.pool)).To(Equal(tc.want)) })
	}
}

// TestMachineDeployment shows what of a pool Cluster API gets to see.
func TestMachineDeployment(t *testing.T) {
	s := newWorld(t, fixture.Start(t), "limits")
	s.ready(nil)
	pool := fixture.NodePool(s.namespace)
	surge, unavailable := intstr.FromInt32(2), intstr.FromInt32(1)
	pool.Spec.Management.Replace = &hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyRollingUpdate,
		RollingUpdate: &hyperv1.RollingUpdate{MaxSurge: &surge, MaxUnavailable: &unavailable}}
	pool.Spec.NodeDrainTimeout, pool.Spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: 90e9}, &metav1.Duration{Duration: 60e9}
	fixture.Create(t, s.client, pool)
	s.mustPass()
	md := s.deployment()
	t.Run("When a pool limits its rolling update, its MachineDeployment should", func(t *testing.T) {
		NewWithT(t).Expect(md.Spec.Rollout.Strategy.RollingUpdate.MaxSurge).To(HaveValue(Equal(surge)))
		NewWithT(t).Expect(md.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable).To(HaveValue(Equal(unavailable)))
	})
	t.Run("When a pool limits how long a node may take to go, its machines should", func(t *testing.T) {
		NewWithT(t).Expect(md.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds).To(HaveValue(BeEquivalentTo(90)))
		NewWithT(t).Expect(md.Spec.Template.Spec.Deletion.NodeVolumeDetachTimeoutSeconds).To(HaveValue(BeEquivalentTo(60)))
	})
	t.Run("When machines are looked for, the pool's label should find them and those of no other", func(t *testing.T) {
		name := (&scope{hc: &hyperv1.HostedCluster{Spec: hyperv1.HostedClusterSpec{InfraID: "demo-abcde"}}, pool: pool}).resourcesName()
		NewWithT(t).Expect(md.Spec.Selector.MatchLabels).To(HaveKeyWithValue(name, name))
		NewWithT(t).Expect(md.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "demo-abcde"))
		NewWithT(t).Expect(md.Spec.Template.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "demo-abcde"))
	})
}

func TestTemplatesInUse(t *testing.T) {
	s := newWorld(t, fixture.Start(t), "templates")
	s.ready(nil)
	fixture.Create(t, s.client, fixture.NodePool(s.namespace))
	s.mustPass()
	first := s.templates()[0].Name
	md := s.deployment()
	old := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "old"}, Spec: clusterv1.MachineSetSpec{
		ClusterName: md.Spec.ClusterName, Replicas: ptr.To[int32](1), Selector: md.Spec.Selector, Template: md.Spec.Template}}
	stranger := &infrav1.MaasMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "strangers",
		Annotations: map[string]string{hyperv1.NodePoolAnnotation: s.namespace + "/another"}}, Spec: s.templates()[0].Spec}
	fixture.Create(t, s.client, old, stranger)
	s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS.Image = "custom/another" })
	s.mustPass()
	names := func() (names []string) {
		for _, template := range s.templates() {
			names = append(names, template.Name)
		}
		slices.Sort(names)
		return names
	}
	t.Run("When a MachineSet still makes machines from a template, it should stay", func(t *testing.T) {
		NewWithT(t).Expect(names()).To(And(HaveLen(3), ContainElement(first)))
	})
	t.Run("When no set uses a template any more, it should go, and none of another pool", func(t *testing.T) {
		NewWithT(t).Expect(s.client.Delete(t.Context(), old)).To(Succeed())
		s.mustPass()
		NewWithT(t).Expect(names()).To(And(HaveLen(2), Not(ContainElement(first)), ContainElement("strangers")))
	})
}
