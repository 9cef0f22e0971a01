// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/x509"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/testenv"
)

const operatorNamespace = "hypershift"

// world is a management cluster with the webhook configuration, and one replica of the operator.
type world struct {
	*WithT
	ctx    context.Context
	client client.Client
	clock  *testclock.FakePassiveClock
	cert   *Certificate
	writes *int
}

func newWorld(t *testing.T, objects ...client.Object) world {
	counted, writes := testenv.Counted(reader(objects...).(client.WithWatch))
	now := testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return world{NewWithT(t), t.Context(), counted, now, &Certificate{Client: counted, Reader: counted, Clock: now, Namespace: operatorNamespace}, writes}
}

// reconcile runs one reconcile, and returns the delay until the next one.
func (s world) reconcile() time.Duration {
	result, err := s.cert.Reconcile(s.ctx, ctrl.Request{})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(result.RequeueAfter).To(BeElementOf(recheck, overlap))
	return result.RequeueAfter
}

func (s world) secret(name string) *corev1.Secret {
	secret := &corev1.Secret{}
	s.Expect(s.client.Get(s.ctx, client.ObjectKey{Namespace: operatorNamespace, Name: name}, secret)).To(Succeed())
	return secret
}

// trusted returns the served certificate, after it checks that the API server trusts it for the Service.
func (s world) trusted() *x509.Certificate {
	pair, err := s.cert.Serving(nil)
	s.Expect(err).NotTo(HaveOccurred())
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	s.Expect(err).NotTo(HaveOccurred())
	config := &admissionv1.MutatingWebhookConfiguration{}
	s.Expect(s.client.Get(s.ctx, client.ObjectKey{Name: operatorwebhook.Name}, config)).To(Succeed())
	s.Expect(config.Webhooks).To(HaveLen(2))
	for _, hook := range config.Webhooks {
		roots := x509.NewCertPool()
		s.Expect(roots.AppendCertsFromPEM(hook.ClientConfig.CABundle)).To(BeTrue())
		_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "operator.hypershift.svc", CurrentTime: s.clock.Now()})
		s.Expect(err).NotTo(HaveOccurred())
	}
	return leaf
}

func TestCertificate(t *testing.T) {
	t.Run("When no Secrets exist, it should create the CA and certificate, and then not write again", func(t *testing.T) {
		s := newWorld(t, operatorwebhook.Configuration(operatorNamespace))
		_, err := s.cert.Serving(nil)
		s.Expect(err).To(MatchError(ContainSubstring("not made yet")))
		s.reconcile()
		leaf := s.trusted()
		s.Expect(leaf.Subject.CommonName).To(Equal("hypershift-operator"))
		s.Expect(leaf.Subject.Organization).To(ConsistOf("openshift"))
		s.Expect(leaf.DNSNames).To(ConsistOf("operator", "operator.hypershift", "operator.hypershift.svc", "operator.hypershift.svc.cluster.local"))
		ca, err := pki.CAOf(s.secret("webhook-serving-ca"))
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(ca.Cert.Subject.CommonName).To(Equal("hypershift-webhook-ca"))
		s.Expect(ca.Cert.Subject.OrganizationalUnit).To(ConsistOf("openshift"))
		s.Expect(s.secret("manager-serving-cert").Data).To(HaveKey(corev1.TLSCertKey))
		writes := *s.writes
		s.reconcile()
		s.Expect(*s.writes).To(Equal(writes))
	})

	t.Run("When another replica has created the certificate, it should serve the same one", func(t *testing.T) {
		s := newWorld(t, operatorwebhook.Configuration(operatorNamespace))
		s.reconcile()
		first, writes := s.trusted(), *s.writes
		s.cert = &Certificate{Client: s.client, Reader: s.client, Clock: s.clock, Namespace: operatorNamespace}
		s.reconcile()
		s.Expect(s.trusted().Equal(first)).To(BeTrue())
		s.Expect(*s.writes).To(Equal(writes))
	})

	t.Run("When the CA Secret is corrupt, it should create a new CA and update the webhook configuration", func(t *testing.T) {
		s := newWorld(t, operatorwebhook.Configuration(operatorNamespace))
		s.reconcile()
		old := s.secret(caSecret)
		broken := old.DeepCopy()
		broken.Data = map[string][]byte{pki.CACertKey: []byte("x"), pki.CAKeyKey: []byte("y")}
		s.Expect(s.client.Update(t.Context(), broken)).To(Succeed())
		s.reconcile()
		s.Expect(s.secret(caSecret).Data).NotTo(Or(Equal(old.Data), Equal(broken.Data)))
		s.trusted()
	})

	t.Run("When the certificate is about to expire, it should be renewed by the same CA", func(t *testing.T) {
		s := newWorld(t, operatorwebhook.Configuration(operatorNamespace))
		s.reconcile()
		old, ca := s.trusted(), s.secret(caSecret)
		s.clock.SetTime(old.NotAfter.Add(-pki.DefaultRenewBefore - time.Hour))
		s.reconcile()
		s.Expect(s.trusted().Equal(old)).To(BeTrue(), "it is early yet")
		s.clock.SetTime(old.NotAfter.Add(-pki.DefaultRenewBefore + time.Hour))
		s.reconcile()
		s.Expect(s.trusted().NotAfter).To(BeTemporally(">", old.NotAfter))
		s.Expect(s.secret(caSecret).Data).To(Equal(ca.Data))
	})

	t.Run("When the CA is about to expire, it should be replaced together with the certificate", func(t *testing.T) {
		s := newWorld(t, operatorwebhook.Configuration(operatorNamespace))
		s.reconcile()
		old, ca := s.trusted(), s.secret(caSecret)
		s.clock.SetTime(s.clock.Now().Add(pki.CAValidity - pki.DefaultValidity))
		s.reconcile()
		s.Expect(s.trusted().NotAfter).To(BeTemporally("~", s.clock.Now().Add(pki.DefaultValidity), time.Minute), "not cut short by its authority")
		s.Expect(s.trusted().Equal(old)).To(BeFalse())
		s.Expect(s.secret(caSecret).Data).NotTo(Equal(ca.Data))
	})

	for _, name := range []string{caSecret, servingSecret} {
		t.Run("When a user deletes or corrupts Secret "+name+", it should be created again", func(t *testing.T) {
			s := newWorld(t, operatorwebhook.Configuration(operatorNamespace))
			s.reconcile()
			old := s.trusted()
			s.Expect(s.client.Delete(s.ctx, s.secret(name))).To(Succeed())
			s.reconcile()
			again := s.trusted()
			s.Expect(again.Equal(old)).To(BeFalse())
			spoilt := s.secret(name)
			spoilt.Data = map[string][]byte{"tls.crt": []byte("x"), "ca.crt": []byte("y")}
			s.Expect(s.client.Update(s.ctx, spoilt)).To(Succeed())
			s.reconcile()
			s.Expect(s.trusted().Equal(again)).To(BeFalse())
		})
	}

	t.Run("When there is no webhook configuration, it should not create one", func(t *testing.T) {
		s := newWorld(t)
		s.reconcile()
		list := &admissionv1.MutatingWebhookConfigurationList{}
		s.Expect(s.client.List(s.ctx, list)).To(Succeed())
		s.Expect(list.Items).To(BeEmpty())
	})

	t.Run("When another replica writes first, it should requeue soon", func(t *testing.T) {
		s := newWorld(t)
		for _, first := range []error{
			apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, caSecret),
			apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, caSecret, nil),
		} {
			s.cert.Client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return first },
			})
			result, err := s.cert.Reconcile(s.ctx, ctrl.Request{})
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(result.RequeueAfter).To(Equal(retry))
		}
	})
}

// crd returns a CRD of Cluster API whose conversion webhook is the operator in a namespace.
func crd(name, namespace string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"cluster.x-k8s.io/provider": "cluster-api"},
	}}
	operatorwebhook.Convert(crd, namespace)
	return crd
}

func (s world) converts(name string) []byte {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	s.Expect(s.client.Get(s.ctx, client.ObjectKey{Name: name}, crd)).To(Succeed())
	return crd.Spec.Conversion.Webhook.ClientConfig.CABundle
}

func TestAuthorityOfTheConversion(t *testing.T) {
	unconverted := crd("unconverted", operatorNamespace)
	operatorwebhook.OnlyStored(unconverted)
	another := crd("another", operatorNamespace)
	another.Labels = nil
	all := func() []client.Object {
		return []client.Object{crd("ours", operatorNamespace), crd("foreign", "capi-system"), unconverted.DeepCopy(), another.DeepCopy(), operatorwebhook.Configuration(operatorNamespace)}
	}
	t.Run("When the operator converts objects, it should set the CA bundle once and only in its own CRDs", func(t *testing.T) {
		s := newWorld(t, all()...)
		s.reconcile()
		s.Expect(s.converts("ours")).To(Equal(s.secret(caSecret).Data[pki.CACertKey]))
		s.Expect(s.converts("foreign")).To(BeEmpty(), "another Cluster API's own converter")
		s.Expect(s.converts("another")).To(BeEmpty(), "a kind of somebody else")
		writes := *s.writes
		s.reconcile()
		s.Expect(*s.writes).To(Equal(writes))
	})

	t.Run("When the CA is replaced, the CRDs should trust the previous one for another hour", func(t *testing.T) {
		s := newWorld(t, all()...)
		s.reconcile()
		old, oldLeaf := s.converts("ours"), s.trusted()
		s.Expect(s.client.Delete(s.ctx, s.secret(caSecret))).To(Succeed())
		s.clock.SetTime(s.clock.Now().Add(24 * time.Hour))
		s.Expect(s.reconcile()).To(Equal(overlap))
		both := x509.NewCertPool()
		s.Expect(both.AppendCertsFromPEM(s.converts("ours"))).To(BeTrue())
		for _, leaf := range []*x509.Certificate{oldLeaf, s.trusted()} {
			_, err := leaf.Verify(x509.VerifyOptions{Roots: both, DNSName: "operator.hypershift.svc", CurrentTime: s.clock.Now()})
			s.Expect(err).NotTo(HaveOccurred())
		}
		writes := *s.writes
		s.Expect(s.reconcile()).To(Equal(overlap))
		s.Expect(*s.writes).To(Equal(writes))

		s.clock.SetTime(s.clock.Now().Add(overlap))
		s.reconcile()
		s.Expect(s.converts("ours")).To(Equal(s.secret(caSecret).Data[pki.CACertKey]))
		s.Expect(s.converts("ours")).NotTo(Equal(old))
		s.trusted()
	})

	t.Run("When the CA bundle is not a certificate, it should be replaced at once", func(t *testing.T) {
		broken := crd("ours", operatorNamespace)
		broken.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("nonsense")
		s := newWorld(t, broken)
		s.reconcile()
		s.Expect(s.converts("ours")).To(Equal(s.secret(caSecret).Data[pki.CACertKey]))
	})
}
