// SPDX-License-Identifier: Apache-2.0

package dataguard_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/dataguard"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	operators = "hypershift"
	namespace = "clusters-demo"
)

func claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// copied returns the operator's copy of a user's Secret with one key.
func copied(name, key string) *corev1.Secret {
	s := secret(name)
	s.Labels, s.Data = map[string]string{hyperv1.UserCopyLabel: "true"}, map[string][]byte{key: []byte("x")}
	return s
}

// TestGuard deletes objects as the users and programs that delete them in a management cluster.
func TestGuard(t *testing.T) {
	g := NewWithT(t)
	config, users := testenv.StartUsers(t)
	c, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	as := func(name string) client.Client {
		other, err := client.New(users(name, "system:masters"), client.Options{})
		g.Expect(err).NotTo(HaveOccurred())
		return other
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace,
		Labels: map[string]string{hyperv1.ControlPlaneNamespaceLabel: "true"}}}
	g.Expect(c.Create(t.Context(), space)).To(Succeed())
	for _, obj := range dataguard.Objects(operators) {
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	}
	guarded := []client.Object{claim("data-etcd-0"), claim("data-etcd-10"), secret(hosted.RootCA),
		secret(hosted.EncryptionConfig), copied("user-key-1", hyperv1.AESCBCKeySecretKey)}
	free := []client.Object{claim("backups"), claim("data-etcd-x"), secret("token"), copied("user-pull-1", "config")}
	for _, obj := range append(guarded, free...) {
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	}
	admin := as("admin")
	// The API server takes a moment to load a policy.
	g.Eventually(func() error { return admin.Delete(t.Context(), guarded[0], client.DryRunAll) }).WithTimeout(time.Minute).
		Should(MatchError(ContainSubstring("persistentvolumeclaims data-etcd-0 of namespace clusters-demo cannot be made again")))

	t.Run("an administrator deletes other objects only", func(t *testing.T) {
		for _, obj := range guarded {
			err := admin.Delete(t.Context(), obj, client.DryRunAll)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(obj.GetName()+" "+hyperv1.AllowDataLossAnnotation+"=true first")), obj.GetName())
		}
		for _, obj := range free {
			NewWithT(t).Expect(admin.Delete(t.Context(), obj, client.DryRunAll)).To(Succeed(), obj.GetName())
		}
	})
	t.Run("a collection is not deleted either", func(t *testing.T) {
		err := admin.DeleteAllOf(t.Context(), &corev1.PersistentVolumeClaim{}, client.InNamespace(namespace), client.DryRunAll)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("cannot be made again")))
	})
	for _, name := range []string{
		"system:serviceaccount:hypershift:operator", "system:serviceaccount:clusters-demo:control-plane-operator",
		"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:namespace-controller",
		"system:kube-controller-manager",
	} {
		t.Run(name+" deletes all of them", func(t *testing.T) {
			program := as(name)
			for _, obj := range guarded {
				NewWithT(t).Expect(program.Delete(t.Context(), obj, client.DryRunAll)).To(Succeed(), obj.GetName())
			}
		})
	}
	for _, name := range []string{
		"system:serviceaccount:clusters-demo-2:control-plane-operator", "system:serviceaccount:hypershift-2:operator",
		"system:serviceaccount:kube-system:statefulset-controller",
	} {
		t.Run(name+" deletes none of them", func(t *testing.T) {
			err := as(name).Delete(t.Context(), guarded[0], client.DryRunAll)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("cannot be made again")))
		})
	}
	t.Run("an administrator deletes an object with the annotation", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(dataguard.Release(t.Context(), admin, guarded[1])).To(Succeed())
		g.Expect(admin.Delete(t.Context(), guarded[1])).To(Succeed())
		g.Expect(dataguard.Release(t.Context(), admin, claim("gone"))).To(Succeed())
	})
	t.Run("a released namespace loses all of them", func(t *testing.T) {
		g := NewWithT(t)
		space.Annotations = map[string]string{hyperv1.NamespaceReleasedAnnotation: "true"}
		g.Expect(c.Update(t.Context(), space)).To(Succeed())
		g.Eventually(func() error { return admin.Delete(t.Context(), guarded[2], client.DryRunAll) }).Should(Succeed())
		space.Annotations = nil
		g.Expect(c.Update(t.Context(), space)).To(Succeed())
		g.Eventually(func() error { return admin.Delete(t.Context(), guarded[2], client.DryRunAll) }).ShouldNot(Succeed())
	})
	t.Run("a terminating namespace loses all of them", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(c.Delete(t.Context(), space)).To(Succeed())
		for _, obj := range []client.Object{guarded[0], guarded[2], guarded[3], guarded[4]} {
			g.Eventually(func() error { return admin.Delete(t.Context(), obj) }).Should(Succeed(), obj.GetName())
		}
	})
}
