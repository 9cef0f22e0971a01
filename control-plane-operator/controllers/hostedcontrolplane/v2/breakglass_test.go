// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/breakglass"
)

// TestBreakGlass logs an administrator of each signer in to a real API server and revokes one signer. The API server
// then rejects the old certificates of that signer, and of no other.
func TestBreakGlass(t *testing.T) {
	r := newTurn(t)
	customer, sre := certificatesv1alpha1.CustomerBreakGlassSigner, certificatesv1alpha1.SREBreakGlassSigner
	others := map[string]*rest.Config{"administrator": r.guestConfig(), "other signer's administrator": r.breaksGlass(sre, "sre")}
	leaked := r.breaksGlass(customer, "leaked")
	r.works("administrator by break glass", leaked)

	asked := &certificatesv1alpha1.CertificateRevocationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "leaked", UID: "5678", CreationTimestamp: metav1.Now()},
		Spec:       certificatesv1alpha1.CertificateRevocationRequestSpec{SignerClass: customer},
	}
	if err := r.scope.Client.Create(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	revoker := &breakglass.Revoker{Client: r.scope.Client, Clock: clocktesting.NewFakePassiveClock(time.Now())}
	look := func() bool {
		t.Helper()
		key := client.ObjectKeyFromObject(asked)
		if _, err := revoker.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		r.get(key.Name, asked)
		return meta.IsStatusConditionTrue(asked.Status.Conditions, certificatesv1alpha1.PreviousCertificatesRevokedType)
	}
	for range 12 {
		done := look()
		for who, config := range others {
			r.works(who+" during a revocation", config)
		}
		if done {
			break
		}
		r.reconcile()
		r.works("administrator of before, whom the API server still trusts", leaked)
		if look() {
			t.Fatal("it is said to be revoked while an API server still trusts it")
		}
		r.roll()
		if r.identify(leaked) != nil {
			break
		}
	}
	r.refused("administrator by break glass of before", leaked)
	for range 3 {
		r.reconcile()
		r.roll()
		look()
	}
	for _, condition := range asked.Status.Conditions {
		if condition.Status != metav1.ConditionTrue {
			t.Errorf("%s is %s: %s", condition.Type, condition.Status, condition.Message)
		}
	}
	if len(asked.Status.Conditions) != 5 {
		t.Errorf("it has the conditions %v", asked.Status.Conditions)
	}
	for who, config := range others {
		r.works(who+" after a revocation", config)
	}
	r.works("administrator by break glass of after", r.breaksGlass(customer, "after"))
}

// breaksGlass returns the access of a user whose certificate request was approved in the management cluster.
func (r *turn) breaksGlass(class, name string) *rest.Config {
	r.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:" + class + ":" + name, Organization: []string{"system:masters"}},
	}, private)
	if err != nil {
		r.t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
			SignerName: "hypershift.openshift.io/" + namespace + "." + class, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
		Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue},
		}},
	}
	if err := r.scope.Client.Create(r.t.Context(), csr); err != nil {
		r.t.Fatal(err)
	}
	if err := r.scope.Client.Status().Update(r.t.Context(), csr); err != nil {
		r.t.Fatal(err)
	}
	signer := &breakglass.Signer{Client: r.scope.Client, Namespace: namespace, Clock: clocktesting.NewFakePassiveClock(time.Now())}
	if _, err := signer.Reconcile(r.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(csr)}); err != nil {
		r.t.Fatal(err)
	}
	if err := r.scope.Client.Get(r.t.Context(), client.ObjectKeyFromObject(csr), csr); err != nil {
		r.t.Fatal(err)
	}
	if len(csr.Status.Certificate) == 0 {
		r.t.Fatalf("%s is not signed: %v", name, csr.Status.Conditions)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		r.t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(r.guestConfig())
	config.CertData, config.KeyData = csr.Status.Certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
	return config
}
