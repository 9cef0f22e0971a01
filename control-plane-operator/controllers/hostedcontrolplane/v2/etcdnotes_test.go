// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
)

// TestEtcdNotes checks that notes decide how members start, and restart no running member.
func TestEtcdNotes(t *testing.T) {
	g := NewWithT(t)
	scope := newScope(controlPlane(highlyAvailable))
	roll := func() (*appsv1.StatefulSet, map[string]string) {
		t.Helper()
		set, config := &appsv1.StatefulSet{}, &corev1.ConfigMap{}
		g.Expect(etcd.New().Reconcile(t.Context(), scope)).To(Succeed())
		g.Expect(scope.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "etcd"}, set)).To(Succeed())
		g.Expect(scope.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "etcd-config"}, config)).To(Succeed())
		return set, config.Data
	}
	before, config := roll()
	for _, text := range config {
		g.Expect(text).To(ContainSubstring("initial-cluster-state: new"))
		g.Expect(strings.Count(text, "=https://")).To(Equal(3), "a cluster that forms knows all its members")
	}
	g.Expect(scope.Client.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: etcd.NotesConfigMap},
		Data:       map[string]string{"etcd-0": "Started some-volume", "etcd-1": "Joining"},
	})).To(Succeed())
	after, config := roll()
	g.Expect(config["etcd-0.yaml"]).To(And(ContainSubstring("initial-cluster-state: existing"), Not(ContainSubstring("etcd-1="))))
	g.Expect(config["etcd-1.yaml"]).To(And(ContainSubstring("initial-cluster-state: existing"), ContainSubstring("etcd-0=")))
	g.Expect(config["etcd-2.yaml"]).To(ContainSubstring("initial-cluster-state: new"))
	g.Expect(after.Spec.Template).To(Equal(before.Spec.Template), "no pod is restarted for it")
}
