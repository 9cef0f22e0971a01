// SPDX-License-Identifier: Apache-2.0

package breakglass

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// TestRefusals processes requests and a revocation on a server that fails each request once. An approved request gets
// a certificate in the end, and a denied one never does.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	server := testenv.NewGrudging(testenv.Client(t, w.config, fixture.Scheme()))
	w.signer.Client, w.caller.Client = server, server
	exhaust := func(asked *certificatesv1.CertificateSigningRequest) {
		t.Helper()
		server.Exhaust(t, func() (ctrl.Result, error) {
			return w.signer.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(asked)})
		}, func() any { return nil })
		w.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(asked), asked)).To(Succeed())
	}
	approved := w.asks("approved", "system:customer-break-glass:anna", hostedA+".customer-break-glass")
	w.approves(hostedA, "approved")
	exhaust(approved)
	w.Expect(approved.Status.Certificate).NotTo(BeEmpty())
	w.Expect(approved.Status.Conditions).To(ConsistOf(And(HaveField("Reason", "ApprovalPresent"), HaveField("LastUpdateTime.Time", BeTemporally("==", w.now)))))

	wrong := w.asks("wrong", "system:node:a", hostedA+".customer-break-glass")
	w.approves(hostedA, "wrong")
	exhaust(wrong)
	w.Expect(wrong.Status.Conditions).To(ContainElement(And(HaveField("Type", certificatesv1.CertificateFailed), HaveField("Reason", "SignerValidationFailure"))))

	denied := w.asks("denied", "system:customer-break-glass:eve", hostedA+".customer-break-glass")
	w.approves(hostedA, "denied")
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "No"}}
	w.Expect(w.client.SubResource("approval").Update(t.Context(), denied)).To(Succeed())
	exhaust(denied)
	w.Expect(denied.Status.Certificate).To(BeEmpty())
	w.Expect(denied.Status.Conditions).To(HaveLen(1))

	revocation := w.revocation("refused")
	for range 7 {
		server.Exhaust(t, func() (ctrl.Result, error) {
			return w.caller.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(revocation)})
		}, func() any { return nil })
		w.rotate()
	}
	w.look(revocation)
	w.Expect(w.said(revocation)).To(HaveSuffix("PreviousCertificatesRevoked=AsExpected"))
	w.Expect(revocation.Status.RevocationTimestamp.Time).To(BeTemporally("==", w.now))
}

// TestWaits checks that a waiting revocation reports what it waits for, and is requeued. It may wait for a signer, for
// another revocation or for pods.
func TestWaits(t *testing.T) {
	w := newWorld(t)
	looks := func(asked *certificatesv1alpha1.CertificateRevocationRequest) time.Duration {
		t.Helper()
		result, err := w.caller.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(asked)})
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(asked), asked)).To(Succeed())
		return result.RequeueAfter
	}
	says := func(asked *certificatesv1alpha1.CertificateRevocationRequest, conditionType string) string {
		return meta.FindStatusCondition(asked.Status.Conditions, conditionType).Message
	}
	signer := w.secret(hostedA, pki.SREBreakGlassSigner)
	w.Expect(w.client.Delete(t.Context(), signer)).To(Succeed())
	first, second := w.revocation("first"), w.revocation("second")
	w.Expect(looks(first)).To(Equal(again))
	w.Expect(says(first, certificatesv1alpha1.SignerClassValidType)).To(BeEmpty())
	w.Expect(says(first, certificatesv1alpha1.RootCertificatesRegeneratedType)).To(ContainSubstring("has not been made"))
	signer.ResourceVersion = ""
	w.create(signer)
	w.Expect(looks(second)).To(Equal(again))
	w.Expect(says(second, certificatesv1alpha1.RootCertificatesRegeneratedType)).To(ContainSubstring("CertificateRevocationRequest first"))

	web := map[string]string{"app": "web"}
	outdated := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: hostedA, Name: "web",
			Labels: map[string]string{hyperv1.ManagedByLabel: "control-plane-operator"}},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: web}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: web}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		}},
	}
	w.create(outdated)
	for range 6 {
		w.Expect(looks(first)).To(Equal(again))
		w.rotate()
	}
	w.Expect(looks(first)).To(Equal(again))
	w.Expect(says(first, certificatesv1alpha1.PreviousCertificatesRevokedType)).To(HaveSuffix("still outdated: web"))
	w.Expect(w.client.Delete(t.Context(), outdated)).To(Succeed())
	w.Expect(looks(first)).To(BeZero())
	w.Expect(w.said(first)).To(HaveSuffix("PreviousCertificatesRevoked=AsExpected"))
}

// TestRevocationGone checks that a revocation that is deleted during the reconcile causes no error.
func TestRevocationGone(t *testing.T) {
	w := newWorld(t)
	asked := w.revocation("gone")
	w.look(asked)
	w.rotate()
	w.caller.Client = testenv.Intercept(w.client.(client.WithWatch), func(request testenv.Request) error {
		if request.Verb == "patch status" {
			w.Expect(w.client.Delete(t.Context(), asked)).To(Succeed())
		}
		return request.Do()
	})
	_, err := w.caller.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(asked)})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(asked), asked)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
}

// TestSignerWithoutCertificate checks that the new certificates are not reported as trusted while the certificate of
// the previous signer is unknown.
func TestSignerWithoutCertificate(t *testing.T) {
	g := NewWithT(t)
	signer := &corev1.Secret{Data: map[string][]byte{"ca.crt": []byte("new")}}
	asked := &certificatesv1alpha1.CertificateRevocationRequest{Spec: certificatesv1alpha1.CertificateRevocationRequestSpec{SignerClass: certificatesv1alpha1.SREBreakGlassSigner}}
	g.Expect(meta.IsStatusConditionFalse(conditions(&scope{request: asked, signer: signer}), certificatesv1alpha1.NewCertificatesTrustedType)).To(BeTrue())
}
