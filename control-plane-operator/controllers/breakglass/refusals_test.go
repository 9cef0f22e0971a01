// SPDX-License-Identifier: Apache-2.0

package breakglass

import (
	"testing"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// TestRefusals leads requests and a revocation through their lives, against a server that refuses each request once: who was approved gets a
// certificate in the end, and who was denied never does.
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
	approved := w.asks("approved", "system:customer-break-glass:anna", hosted+".customer-break-glass")
	w.approves(hosted, "approved")
	exhaust(approved)
	w.Expect(approved.Status.Certificate).NotTo(BeEmpty())
	w.Expect(approved.Status.Conditions).To(ConsistOf(And(HaveField("Reason", "ApprovalPresent"), HaveField("LastUpdateTime.Time", BeTemporally("==", w.now)))))

	wrong := w.asks("wrong", "system:node:a", hosted+".customer-break-glass")
	w.approves(hosted, "wrong")
	exhaust(wrong)
	w.Expect(wrong.Status.Conditions).To(ContainElement(And(HaveField("Type", certificatesv1.CertificateFailed), HaveField("Reason", "SignerValidationFailure"))))

	denied := w.asks("denied", "system:customer-break-glass:eve", hosted+".customer-break-glass")
	w.approves(hosted, "denied")
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

// TestWaits: a revocation that waits for a signer, for another one or for pods is looked at again.
func TestWaits(t *testing.T) {
	w := newWorld(t)
	first, second := w.revocation("first"), w.revocation("second")
	for _, asked := range []client.Object{second, first} {
		result, err := w.caller.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(asked)})
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(result.RequeueAfter).To(Equal(again), asked.GetName())
	}
}
