// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestTerminating(t *testing.T) {
	going := func(obj client.Object, namespace, name string) client.Object {
		obj.SetNamespace(namespace)
		obj.SetName(name)
		obj.SetFinalizers([]string{"kubernetes.io/pvc-protection"})
		obj.SetDeletionTimestamp(&metav1.Time{Time: now})
		return obj
	}
	here := withScope().Namespace
	for name, tc := range map[string]struct {
		objects   []client.Object
		repairing bool
		says      string
	}{
		"nothing is deleted": {[]client.Object{&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "data-etcd-0"}}}, false, ""},
		"a volume and the root CA": {[]client.Object{going(&corev1.PersistentVolumeClaim{}, here, "data-etcd-1"),
			going(&corev1.PersistentVolumeClaim{}, here, "data-etcd-0"), going(&corev1.Secret{}, here, "root-ca")}, false,
			"PersistentVolumeClaim data-etcd-0, PersistentVolumeClaim data-etcd-1, Secret root-ca in namespace " + here},
		"a volume of a member that is replaced": {[]client.Object{going(&corev1.PersistentVolumeClaim{}, here, "data-etcd-0")}, true, ""},
		"the root CA during a replacement":      {[]client.Object{going(&corev1.Secret{}, here, "root-ca")}, true, "Secret root-ca"},
		"other objects":                         {[]client.Object{going(&corev1.PersistentVolumeClaim{}, here, "backups"), going(&corev1.Secret{}, here, "token")}, false, ""},
		"a volume of another cluster":           {[]client.Object{going(&corev1.PersistentVolumeClaim{}, "elsewhere", "data-etcd-0")}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, d := NewWithT(t), newDesk(tc.objects...)
			s := withScope(reporting(is(hyperv1.EtcdRecoveryActive, map[bool]metav1.ConditionStatus{true: "True", false: "False"}[tc.repairing], "R", "")))
			g.Expect(d.observeTerminating(t.Context(), s)).To(Succeed())
			c, reported := s.Conditions[string(hyperv1.ControlPlaneDataRetained)]
			g.Expect(reported).To(Equal(tc.says != ""))
			if reported {
				g.Expect(string(c.Status) + c.Reason).To(Equal("FalseDataTerminating"))
				g.Expect(c.Message).To(HavePrefix(tc.says))
			}
		})
	}
	t.Run("a cluster that is deleted reports nothing", func(t *testing.T) {
		g, d := NewWithT(t), newDesk(going(&corev1.PersistentVolumeClaim{}, here, "data-etcd-0"))
		s := withScope(reporting())
		s.HC.DeletionTimestamp = &metav1.Time{Time: now}
		g.Expect(d.observeTerminating(t.Context(), s)).To(Succeed())
		g.Expect(s.Conditions).To(BeEmpty())
	})
}
