// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// site is the state that a rollout would change.
type site struct {
	Deployment clusterv1.MachineDeploymentSpec
	Machine    string
	Templates  []string
}

func (s *world) site(machine string) site {
	s.t.Helper()
	m := &clusterv1.Machine{}
	s.Expect(s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: machine}, m)).To(Succeed())
	found := site{Deployment: s.deployment().Spec, Machine: m.ResourceVersion}
	for _, template := range s.templates() {
		found.Templates = append(found.Templates, template.Name+" "+template.ResourceVersion)
	}
	return found
}

// configure makes the pool use a new ConfigMap.
func (s *world) configure(name, text string) {
	s.t.Helper()
	fixture.Create(s.t, s.client, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Data: map[string]string{"config": text}})
	s.change(func(p *hyperv1.NodePool) { p.Spec.Config = []corev1.LocalObjectReference{{Name: name}} })
}

const goodConfig = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: extra}\nspec: {config: {ignition: {version: 3.2.0}}}\n"

func TestHold(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "hold")
	s.start(nil)
	first := *s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName
	s.machine("m1", first)
	s.mustPass()
	untouched := s.site("m1")

	t.Run("When the ignition-server rejects a configuration, it should keep every machine and report why", func(t *testing.T) {
		s.refusal = "unit x.service is malformed"
		s.configure("bad", goodConfig)
		// The machine settings change too. They must not cause a new template either.
		s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS.MinCPU = ptr.To[int32](16) })
		s.mustPass()
		s.Expect(s.site("m1")).To(Equal(untouched))
		payload := s.condition("ValidGeneratedPayload")
		s.Expect(payload.Status).To(Equal(corev1.ConditionFalse))
		s.Expect(payload.Reason).To(Equal("InvalidConfig"))
		s.Expect(payload.Message).To(Equal(s.refusal))
		s.Expect(s.condition("UpdatingConfig").Message).To(And(ContainSubstring("Machines stay unchanged until then"), ContainSubstring(s.refusal)))
		s.secret(first)
		s.Expect(s.tokenOf(first).Annotations).NotTo(HaveKey(hyperv1.IgnitionServerTokenExpirationTimestampAnnotation),
			"machines of the last configuration may still be made")
	})

	t.Run("When the configuration is rejected, the pool should scale with the last valid configuration", func(t *testing.T) {
		s.change(func(p *hyperv1.NodePool) {
			p.Spec.Replicas = ptr.To[int32](3)
			p.Spec.Management.Replace = &hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyOnDelete}
		})
		s.mustPass()
		s.Expect(s.deployment().Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		s.Expect(s.deployment().Spec.Rollout.Strategy.Type).To(Equal(clusterv1.OnDeleteMachineDeploymentStrategyType), "how machines go is no configuration of theirs")
		s.Expect(s.deployment().Spec.Template).To(Equal(untouched.Deployment.Template))
	})

	t.Run("When the operator itself rejects a configuration, the pool should still scale", func(t *testing.T) {
		s.configure("worse", "kind: Deployment")
		s.change(func(p *hyperv1.NodePool) { p.Spec.Replicas = ptr.To[int32](4) })
		s.mustPass()
		s.Expect(s.condition("ValidMachineConfig").Message).To(ContainSubstring(`the ConfigMap hold/worse holds a configuration that cannot be used`))
		s.Expect(s.deployment().Spec.Replicas).To(HaveValue(BeEquivalentTo(4)))
		s.Expect(s.deployment().Spec.Template).To(Equal(untouched.Deployment.Template))
	})

	t.Run("When the ignition-server is down, machines should stay unchanged and the pool should report the reason", func(t *testing.T) {
		s.refusal = "-"
		s.configure("unseen", goodConfig+"---\n"+goodConfig)
		hc := &hyperv1.HostedCluster{}
		s.Expect(c.Get(t.Context(), ctrlKey(s.namespace, fixture.ClusterName), hc)).To(Succeed())
		hc.Status.Conditions = []metav1.Condition{{Type: "IgnitionEndpointAvailable", Status: metav1.ConditionFalse, Reason: "WaitingForAvailable",
			Message: "0 of 1 replicas are available", LastTransitionTime: metav1.Now()}}
		s.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
		s.mustPass()
		payload := s.condition("ValidGeneratedPayload")
		s.Expect(payload.Status).To(Equal(corev1.ConditionUnknown))
		s.Expect(payload.Reason).To(Equal("WaitingForIgnitionServer"))
		s.Expect(payload.Message).To(ContainSubstring("0 of 1 replicas are available"))
		s.Expect(s.deployment().Spec.Template).To(Equal(untouched.Deployment.Template))
	})

	t.Run("When the configuration is rendered, it should replace machines with ones that use it", func(t *testing.T) {
		s.refusal = ""
		s.mustPass()
		md := s.deployment()
		s.Expect(*md.Spec.Template.Spec.Bootstrap.DataSecretName).NotTo(Equal(first))
		s.Expect(md.Spec.Template.Spec.InfrastructureRef.Name).NotTo(Equal(untouched.Deployment.Template.Spec.InfrastructureRef.Name))
		s.Expect(s.condition("ValidGeneratedPayload").Status).To(Equal(corev1.ConditionTrue))
		s.Expect(s.condition("UpdatingConfig").Message).NotTo(ContainSubstring("Machines stay unchanged until then"))
	})
}

func TestHoldNewPool(t *testing.T) {
	t.Run("When the first configuration is rejected, it should create no machines", func(t *testing.T) {
		s := newWorld(t, fixture.Start(t), "hold-new")
		s.refusal = "unit x.service is malformed"
		s.start(nil)
		s.Expect(s.gone(&clusterv1.MachineDeployment{}, client.ObjectKey{Namespace: s.hosted(), Name: fixture.PoolName})).To(BeTrue())
		s.Expect(s.templates()).To(BeEmpty())
		ready := s.condition("Ready")
		s.Expect(ready.Reason).To(Equal("InvalidConfig"))
		s.Expect(ready.Message).To(ContainSubstring("unit x.service is malformed"))
	})
}
