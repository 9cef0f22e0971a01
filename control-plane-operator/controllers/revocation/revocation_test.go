// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

func TestReconcile(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	g.Expect(certificatesv1alpha1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(testenv.Start(t, crds.Certificates), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	request := &certificatesv1alpha1.CertificateRevocationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "leaked"},
		Spec:       certificatesv1alpha1.CertificateRevocationRequestSpec{SignerClass: certificatesv1alpha1.CustomerBreakGlassSigner},
	}
	g.Expect(c.Create(t.Context(), request)).To(Succeed())
	r, key := &Reconciler{Client: c}, client.ObjectKeyFromObject(request)
	pass := func() {
		t.Helper()
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		g.Expect(err).NotTo(HaveOccurred())
	}

	pass()
	g.Expect(c.Get(t.Context(), key, request)).To(Succeed())
	g.Expect(request.Status.Conditions).To(HaveLen(1))
	said := request.Status.Conditions[0]
	g.Expect(said.Type).To(Equal("SignerClassValid"))
	g.Expect(said.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(said.Message).To(ContainSubstring(`Nothing is revoked`))

	settled := request.ResourceVersion
	pass()
	g.Expect(c.Get(t.Context(), key, request)).To(Succeed())
	g.Expect(request.ResourceVersion).To(Equal(settled), "what was said once is not said again")

	g.Expect(c.Delete(t.Context(), request)).To(Succeed())
	pass()
}

func TestWatches(t *testing.T) {
	t.Run("When a CertificateRevocationRequest appears, it should be answered", func(t *testing.T) {
		scheme, config := runtime.NewScheme(), testenv.Start(t, crds.Certificates)
		if err := certificatesv1alpha1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		c, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		requests := testenv.Manage(t, config, scheme, func(mgr ctrl.Manager) error {
			return (&Reconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
		})
		request := &certificatesv1alpha1.CertificateRevocationRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "watched"},
			Spec:       certificatesv1alpha1.CertificateRevocationRequestSpec{SignerClass: certificatesv1alpha1.CustomerBreakGlassSigner},
		}
		requests.Expect(t, request, client.ObjectKeyFromObject(request), func() error { return c.Create(t.Context(), request) })
	})
}
