// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
)

// planted returns the copy of a user's object that version 0.1.0 created: it has the name that the user chose.
func planted(made client.Object) client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: made.GetName(),
		Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}
	if _, is := made.(*corev1.ConfigMap); is {
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"x": "a user wrote this"}}
	}
	return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"x": []byte("a user wrote this")}}
}

// made returns the Secrets and ConfigMaps that are not among the test's own objects.
func made(t *testing.T, scope *component.Scope, given ...client.Object) []client.Object {
	t.Helper()
	g := NewWithT(t)
	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	g.Expect(scope.Client.List(t.Context(), secrets)).To(Succeed())
	g.Expect(scope.Client.List(t.Context(), configMaps)).To(Succeed())
	known := map[string]bool{}
	for _, obj := range given {
		known[obj.GetName()] = true
	}
	var all []client.Object
	add := func(obj client.Object) {
		if !known[obj.GetName()] && metav1.GetControllerOf(obj) != nil {
			all = append(all, obj)
		}
	}
	for i := range secrets.Items {
		add(&secrets.Items[i])
	}
	for i := range configMaps.Items {
		add(&configMaps.Items[i])
	}
	return all
}

// rollAll reconciles all components and returns their messages.
func rollAll(t *testing.T, scope *component.Scope) (said []string) {
	t.Helper()
	scope.Images.(payload)["cluster-autoscaler"] = "registry.example/payload/cluster-autoscaler@sha256:0001"
	for _, c := range Kubernetes(Config{ConfigOperatorImage: "registry.example/hypershift:latest"}) {
		ready(t, scope, c.Dependencies...)
		if err := c.Reconcile(t.Context(), scope); err != nil {
			said = append(said, err.Error())
		}
		ready(t, scope, c.Name)
	}
	return said
}

// TestPlantedObjects covers each Secret and ConfigMap that the components and the PKI of a control plane create. An
// object that a user may have written is rejected; it is neither completed nor read.
func TestPlantedObjects(t *testing.T) {
	given := everythingNeeds(t)
	scope := newScope(controlPlane(everything), given...)
	NewWithT(t).Expect(rollAll(t, scope)).To(BeEmpty())
	byComponents := made(t, scope, given...)
	NewWithT(t).Expect(byComponents).NotTo(BeEmpty())
	for _, obj := range byComponents {
		t.Run("of a component: "+obj.GetName(), func(t *testing.T) {
			scope := newScope(controlPlane(everything), append(everythingNeeds(t), planted(obj))...)
			NewWithT(t).Expect(rollAll(t, scope)).To(ContainElement(And(
				ContainSubstring(obj.GetName()), ContainSubstring("is refused: it may be a copy of an object that a user wrote"))))
		})
	}
	scope = withPKI(t, newScope(controlPlane()))
	byPKI := made(t, scope)
	NewWithT(t).Expect(len(byPKI)).To(BeNumerically(">", 30))
	for _, obj := range byPKI {
		t.Run("of the PKI: "+obj.GetName(), func(t *testing.T) {
			scope := newScope(controlPlane(), planted(obj))
			r := &pki.Reconciler{Client: scope.Client, Clock: clocktesting.NewFakePassiveClock(now)}
			NewWithT(t).Expect(r.Reconcile(t.Context(), scope.HCP, scope.Infra)).To(MatchError(And(
				ContainSubstring(obj.GetName()), ContainSubstring("is refused: it may be a copy of an object that a user wrote"))))
		})
	}
}
