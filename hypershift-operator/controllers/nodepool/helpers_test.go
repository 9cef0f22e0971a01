// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func updateHistory(version string, at metav1.Time) configv1.UpdateHistory {
	return configv1.UpdateHistory{State: configv1.CompletedUpdate, StartedTime: at, CompletionTime: &at,
		Version: version, Image: "registry.example/release:" + version}
}

// laterImage is a newer release than the fixture's.
const laterImage = "registry.example/release:1.36.4"

func laterPayloads() fixture.Releases {
	payloads := fixture.Payloads()
	payloads[laterImage] = releaseinfo.New(laterImage, releaseinfo.Payload{
		Version: "1.36.4", Distribution: releaseinfo.Kubernetes, Components: map[string]string{"kube-apiserver": "registry.example/kube-apiserver:2"},
	})
	return payloads
}

// cluster changes the status of the pool's cluster.
func (s *world) cluster(mutate func(*hyperv1.HostedCluster)) {
	s.t.Helper()
	hc := &hyperv1.HostedCluster{}
	s.Expect(s.client.Get(s.t.Context(), ctrlKey(s.namespace, fixture.ClusterName), hc)).To(Succeed())
	mutate(hc)
	s.Expect(s.client.Status().Update(s.t.Context(), hc)).To(Succeed())
}

// birth creates a Machine with its MaasMachine, as Cluster API does from the pool's current MachineDeployment.
func (s *world) birth(name string) *clusterv1.Machine {
	s.t.Helper()
	md := s.deployment()
	machine := s.machine(name, *md.Spec.Template.Spec.Bootstrap.DataSecretName)
	template := &infrav1.MaasMachineTemplate{}
	s.Expect(s.client.Get(s.t.Context(), ctrlKey(s.hosted(), md.Spec.Template.Spec.InfrastructureRef.Name), template)).To(Succeed())
	fixture.Create(s.t, s.client, &infrav1.MaasMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: name, Annotations: map[string]string{
			clusterv1.TemplateClonedFromNameAnnotation: template.Name, hyperv1.NodePoolAnnotation: s.key().String(),
		}},
		Spec: template.Spec.Template.Spec,
	})
	return machine
}

// serve gives a machine a Ready node.
func (s *world) serve(machine *clusterv1.Machine) {
	s.t.Helper()
	look(s, machine, machine.Name)
	machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: machine.Name}
	for _, conditionType := range []string{clusterv1.MachineAvailableCondition, clusterv1.MachineReadyCondition, clusterv1.MachineNodeHealthyCondition} {
		machine.Status.Conditions = append(machine.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: metav1.ConditionTrue, Reason: "Serves", LastTransitionTime: metav1.Now(),
		})
	}
	s.Expect(s.client.Status().Update(s.t.Context(), machine)).To(Succeed())
}

// born creates a machine that is already available.
func (s *world) born(name string) {
	s.t.Helper()
	s.serve(s.birth(name))
}

// bury deletes machines and the objects behind them.
func (s *world) bury(names ...string) {
	s.t.Helper()
	for _, name := range names {
		meta := metav1.ObjectMeta{Namespace: s.hosted(), Name: name}
		s.Expect(s.client.Delete(s.t.Context(), &clusterv1.Machine{ObjectMeta: meta})).To(Succeed())
		s.Expect(client.IgnoreNotFound(s.client.Delete(s.t.Context(), &infrav1.MaasMachine{ObjectMeta: meta}))).To(Succeed())
	}
}

// look reads an object of the hosted control plane namespace.
func look[T client.Object](s *world, obj T, name string) T {
	s.t.Helper()
	s.Expect(s.client.Get(s.t.Context(), ctrlKey(s.hosted(), name), obj)).To(Succeed())
	return obj
}
