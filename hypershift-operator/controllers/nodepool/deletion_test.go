// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

const holder = "somebody.example/holds"

// TestDeletionWaits checks that the objects that create machines are deleted first, and that all others stay until the
// machines are gone.
func TestDeletionWaits(t *testing.T) {
	for kind, obj := range map[string]client.Object{
		"MachineHealthCheck": &clusterv1.MachineHealthCheck{}, "MachineDeployment": &clusterv1.MachineDeployment{}, "MachineSet": &clusterv1.MachineSet{},
	} {
		t.Run("When a "+kind+" still exists, the pool should wait and name it in a condition", func(t *testing.T) {
			s := startInMemory(t, nil)
			key := ctrlKey(s.hosted(), fixture.PoolName)
			if err := s.client.Get(t.Context(), key, obj); err != nil {
				obj.SetNamespace(s.hosted())
				obj.SetName(fixture.PoolName)
				fixture.Create(t, s.client, obj)
			}
			obj.SetFinalizers([]string{holder})
			scope.Annotate(obj, clusterv1.PausedAnnotation, "true")
			s.Expect(s.client.Update(t.Context(), obj)).To(Succeed())
			s.Expect(s.client.Delete(t.Context(), s.pool())).To(Succeed())
			for range 3 {
				result, err := s.pass()
				s.Expect(err).NotTo(HaveOccurred())
				s.Expect(result.RequeueAfter).To(Equal(5 * time.Second))
			}
			s.Expect(s.condition("Ready")).To(And(HaveField("Reason", "Deleting"), HaveField("Severity", ""),
				HaveField("Message", ContainSubstring("%s clusters-demo/demo", kind))))
			s.Expect(s.templates()).To(HaveLen(1), "a machine may still be made")
			look(s, obj, fixture.PoolName)
			s.Expect(obj.GetAnnotations()).NotTo(HaveKey(clusterv1.PausedAnnotation))
			s.Expect(obj.GetDeletionTimestamp()).NotTo(BeNil())
			obj.SetFinalizers(nil)
			s.Expect(s.client.Update(t.Context(), obj)).To(Succeed())
			s.mustPass()
			s.Expect(s.gone(&hyperv1.NodePool{}, s.key())).To(BeTrue())
		})
	}
}

// TestDeletionWithMachine deletes a pool with a machine.
func TestDeletionWithMachine(t *testing.T) {
	s := startInMemory(t, nil)
	machine := s.birth("a")
	machine.Finalizers = []string{holder}
	s.Expect(s.client.Update(t.Context(), machine)).To(Succeed())
	own := map[string]string{hyperv1.NodePoolAnnotation: fixture.PoolName}
	config := func(name string, labels map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: name, Labels: labels}}
	}
	fixture.Create(t, s.client, config("own", own), config("others", map[string]string{hyperv1.NodePoolAnnotation: "other"}), config("nobodys", nil))
	s.Expect(s.client.Delete(t.Context(), s.pool())).To(Succeed())
	s.change(func(p *hyperv1.NodePool) {
		p.Spec.Platform.MAAS.DeployTimeout = &metav1.Duration{Duration: 7 * time.Hour}
	})
	for range 2 {
		result, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(result.RequeueAfter).To(Equal(5 * time.Second))
	}
	s.Expect(s.condition("Ready")).To(And(HaveField("Reason", "Deleting"), HaveField("Message", ContainSubstring("1 machine "))))
	s.Expect(look(s, &infrav1.MaasMachine{}, "a").Spec.Timeouts.Deploy).To(HaveValue(HaveField("Duration", 7*time.Hour)), "a last change reaches machines")
	s.Expect(s.templates()).To(HaveLen(1))
	look(s, &corev1.ConfigMap{}, "own")
	s.secret(*machine.Spec.Bootstrap.DataSecretName)

	look(s, machine, "a")
	machine.Finalizers = nil
	s.Expect(s.client.Update(t.Context(), machine)).To(Succeed())
	s.bury("a")
	s.mustPass()
	s.Expect(s.gone(&hyperv1.NodePool{}, s.key())).To(BeTrue())
	s.Expect(s.templates()).To(BeEmpty())
	configs, secrets := &corev1.ConfigMapList{}, &corev1.SecretList{}
	s.Expect(s.client.List(t.Context(), configs, client.InNamespace(s.hosted()))).To(Succeed())
	s.Expect(configs.Items).To(ConsistOf(HaveField("Name", "others"), HaveField("Name", "nobodys")))
	s.Expect(s.client.List(t.Context(), secrets, client.InNamespace(s.hosted()))).To(Succeed())
	s.Expect(secrets.Items).To(ConsistOf(HaveField("Name", "ignition-server-ca-cert")))
}

func TestWhyMachinesStay(t *testing.T) {
	going := func(name, message string) *clusterv1.Machine {
		return scopetest.Machine(name, "wanted", func(m *clusterv1.Machine) {
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Message: message}}
		})
	}
	infra := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: "a"}}
	infra.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ReleaseFailed", Message: "MAAS does not answer"}}
	well := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: "c"}}
	well.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"}}
	drains, problem := "\nMachine a: drains", "\nMachine a: MAAS does not answer"
	for name, test := range map[string]struct {
		served, refused bool
		want            string
	}{
		"When machines remain, it should report the reasons from Cluster API and the platform":            {true, false, drains + problem},
		"When the platform is not served, it should report only the reasons from Cluster API":             {false, false, drains},
		"When the platform's machines cannot be read, it should report only the reasons from Cluster API": {true, true, drains},
	} {
		t.Run(name, func(t *testing.T) {
			w := inMemory(t)
			fixture.Create(t, w.client, infra.DeepCopy(), well.DeepCopy())
			w.Expect(w.client.Status().Update(t.Context(), withVersionOf(t, w, infra))).To(Succeed())
			w.Expect(w.client.Status().Update(t.Context(), withVersionOf(t, w, well))).To(Succeed())
			if test.refused {
				w.Reconciler.Client = testenv.NewGrudging(w.client)
			}
			s := pass(going("a", "drains"), going("b", ""), scopetest.Machine("c", "wanted"))
			s.Platform, _ = fixture.Platforms(nil).For(hyperv1.MAASPlatform)
			s.PlatformServed = test.served
			w.Expect(w.whyMachinesStay(t.Context(), s)).To(Equal("Waiting for 3 machines to be deleted" + test.want))
		})
	}
}

// withVersionOf returns a copy of an object that can replace the existing one.
func withVersionOf[T client.Object](t *testing.T, w *world, obj T) T {
	t.Helper()
	fresh := obj.DeepCopyObject().(T)
	there := obj.DeepCopyObject().(T)
	w.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(obj), there)).To(Succeed())
	fresh.SetResourceVersion(there.GetResourceVersion())
	return fresh
}

// TestDeletionOfStrangers checks that a pool in another cluster's namespace owns nothing there, and is deleted at
// once.
func TestDeletionOfStrangers(t *testing.T) {
	s := startInMemory(t, nil)
	namespace := &corev1.Namespace{}
	s.Expect(s.client.Get(t.Context(), client.ObjectKey{Name: s.hosted()}, namespace)).To(Succeed())
	namespace.Annotations = map[string]string{hyperv1.HostedClusterAnnotation: "elsewhere/demo"}
	s.Expect(s.client.Update(t.Context(), namespace)).To(Succeed())

	_, err := s.pass()
	s.Expect(err).To(MatchError(ContainSubstring(s.hosted())))
	s.Expect(s.condition("Ready")).To(And(HaveField("Status", corev1.ConditionFalse), HaveField("Reason", hyperv1.NamespaceNotOwnedReason), HaveField("Message", ContainSubstring("elsewhere/demo"))))
	s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil = ptr.To("true") })
	_, err = s.pass()
	s.Expect(err).To(HaveOccurred(), "a pause does not hide it")

	s.Expect(s.client.Delete(t.Context(), s.pool())).To(Succeed())
	_, err = s.pass()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.gone(&hyperv1.NodePool{}, s.key())).To(BeTrue())
	s.Expect(s.deployment().DeletionTimestamp).To(BeNil())
	s.Expect(s.templates()).To(HaveLen(1))
}

// TestDeleteTemplates checks that no templates are listed if the platform has none, or is not served.
func TestDeleteTemplates(t *testing.T) {
	for name, test := range map[string]struct {
		served bool
		kind   hyperv1.PlatformType
		asks   bool
	}{
		"When the platform has templates, it should list them":                {true, hyperv1.MAASPlatform, true},
		"When the platform is not served, it should not list templates":       {false, hyperv1.MAASPlatform, false},
		"When the platform creates no machines, it should not list templates": {true, hyperv1.NonePlatform, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := inMemory(t), pass()
			s.Platform, _ = fixture.Platforms(nil).For(test.kind)
			s.PlatformServed = test.served
			w.Reconciler.Client = testenv.NewGrudging(w.client)
			err := w.deleteTemplates(t.Context(), s, func(string) bool { return true })
			w.Expect(err != nil).To(Equal(test.asks), fmt.Sprint(err))
		})
	}
}
