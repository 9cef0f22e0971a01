// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// TestUpgrade covers the copy that an older operator created in the hosted control plane namespace.
func TestUpgrade(t *testing.T) {
	mirror := client.ObjectKey{Namespace: "clusters-demo", Name: mirrorName(testCluster().HostedCluster)}
	old := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: mirror.Namespace, Name: mirror.Name, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}},
			Data:       map[string][]byte{"MAAS_ENDPOINT": []byte("http://m/MAAS"), "MAAS_API_KEY": []byte("a:b:c")},
		}
	}
	provider := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: mirror.Namespace, Name: "capi-provider"}}
	provider.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "maas-ca", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: mirror.Name}}}}

	t.Run("When the user's Secret is gone, it should move the last copy but keep the old one while it is in use", func(t *testing.T) {
		g, p := NewWithT(t), testPlatform(&server{})
		c := testClient(t, old(), provider.DeepCopy())
		credentials, err := p.ReconcileCredentials(t.Context(), c, testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials.Hash).NotTo(BeEmpty())
		moved := &corev1.Secret{}
		g.Expect(c.Get(t.Context(), theCopy, moved)).To(Succeed())
		g.Expect(moved.Data).To(Equal(old().Data))
		g.Expect(c.Get(t.Context(), mirror, &corev1.Secret{})).To(Succeed())

		g.Expect(c.Delete(t.Context(), provider.DeepCopy())).To(Succeed())
		_, err = p.ReconcileCredentials(t.Context(), c, testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(apierrors.IsNotFound(c.Get(t.Context(), mirror, &corev1.Secret{}))).To(BeTrue())
	})
	t.Run("When a Secret of that name belongs to another owner, it should not change it", func(t *testing.T) {
		g, p := NewWithT(t), testPlatform(&server{})
		theirs := old()
		theirs.Annotations = nil
		c := testClient(t, theirs, credentials(map[string]string{"MAAS_ENDPOINT": "http://m/MAAS", "MAAS_API_KEY": "d:e:f"}))
		_, err := p.ReconcileCredentials(t.Context(), c, testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Get(t.Context(), mirror, theirs)).To(Succeed())
		g.Expect(theirs.Data).To(Equal(old().Data))
	})
	t.Run("When the cluster is deleted, it should delete the copy and its Role and RoleBinding", func(t *testing.T) {
		g, p := NewWithT(t), testPlatform(&server{})
		c := testClient(t, credentials(map[string]string{"MAAS_ENDPOINT": "http://m/MAAS", "MAAS_API_KEY": "d:e:f"}))
		_, err := p.ReconcileCredentials(t.Context(), c, testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.DeleteCredentials(t.Context(), c, testCluster())).To(Succeed())
		for _, obj := range []client.Object{&corev1.Secret{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
			g.Expect(apierrors.IsNotFound(c.Get(t.Context(), theCopy, obj))).To(BeTrue(), "%T", obj)
		}
	})
}

// TestUnknownSecret covers a HostedCluster that is gone, so that the name of its Secret is unknown.
func TestUnknownSecret(t *testing.T) {
	data := map[string]string{"MAAS_ENDPOINT": "http://m/MAAS", "MAAS_API_KEY": "a:b:c"}
	unknown := testCluster()
	unknown.HostedCluster.Spec.Platform.MAAS = nil
	asked := func(t *testing.T, objects ...client.Object) client.Client {
		t.Helper()
		return interceptor.NewClient(testClient(t, objects...).(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
				opts ...client.GetOption) error {
				if key.Name == "" {
					return errors.New("resource name may not be empty")
				}
				return c.Get(ctx, key, obj, opts...)
			}})
	}
	t.Run("keeps the last copy for the provider", func(t *testing.T) {
		g, p, c := NewWithT(t), testPlatform(&server{}), asked(t, credentials(data))
		known, err := p.ReconcileCredentials(t.Context(), c, testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		before := handed(t, c)
		got, err := p.ReconcileCredentials(t.Context(), c, unknown)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Hash).To(Equal(known.Hash))
		g.Expect(got.Condition).To(And(HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", ContainSubstring("identityRef.name"))))
		g.Expect(handed(t, c)).To(Equal(before))
	})
	t.Run("has no credentials without a copy", func(t *testing.T) {
		g, p := NewWithT(t), testPlatform(&server{})
		got, err := p.ReconcileCredentials(t.Context(), asked(t), unknown)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Hash).To(BeEmpty())
	})
}
