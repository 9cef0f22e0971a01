// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/pki"
)

// TestAgain checks that the controller requeues while a previous CA is still trusted, so that it can remove it later.
func TestAgain(t *testing.T) {
	for name, objects := range map[string]func() []client.Object{
		"defaults are set": func() []client.Object { return []client.Object{operatorwebhook.Configuration(operatorNamespace)} },
		"objects are converted": func() []client.Object {
			return []client.Object{crd("ours", operatorNamespace), crd("theirs", "capi-system")}
		},
		"defaults are set and objects are converted": func() []client.Object {
			return []client.Object{crd("ours", operatorNamespace), operatorwebhook.Configuration(operatorNamespace)}
		},
	} {
		t.Run("When "+name+" and the CA is replaced, it should requeue until the previous CA is removed after an hour", func(t *testing.T) {
			s := newWorld(t, objects()...)
			s.Expect(s.reconcile()).To(Equal(recheck))
			s.Expect(s.client.Delete(s.ctx, s.secret(caSecret))).To(Succeed())
			s.clock.SetTime(s.clock.Now().Add(24 * time.Hour))
			s.Expect(s.reconcile()).To(Equal(overlap))
			s.Expect(s.reconcile()).To(Equal(overlap), "not only when it writes")
			ca, err := pki.CAOf(s.secret(caSecret))
			s.Expect(err).NotTo(HaveOccurred())
			s.clock.SetTime(ca.Cert.NotBefore.Add(overlap - time.Second))
			s.Expect(s.reconcile()).To(Equal(overlap))
			s.clock.SetTime(ca.Cert.NotBefore.Add(overlap))
			s.Expect(s.reconcile()).To(Equal(recheck))
		})
	}
	t.Run("When there are no webhooks or CRDs, it should only recheck its certificates", func(t *testing.T) {
		NewWithT(t).Expect(newWorld(t).reconcile()).To(Equal(recheck))
	})
	t.Run("When one of several CRDs still trusts the previous CA, it should requeue for its removal", func(t *testing.T) {
		for _, stale := range []string{"a", "b"} {
			s := newWorld(t, crd("a", operatorNamespace), crd("b", operatorNamespace))
			s.reconcile()
			other, err := pki.NewCA(pki.Name{CommonName: "before"}, s.clock.Now())
			s.Expect(err).NotTo(HaveOccurred())
			kind := &apiextensionsv1.CustomResourceDefinition{}
			s.Expect(s.client.Get(s.ctx, client.ObjectKey{Name: stale}, kind)).To(Succeed())
			kind.Spec.Conversion.Webhook.ClientConfig.CABundle = other.CertPEM
			s.Expect(s.client.Update(s.ctx, kind)).To(Succeed())
			s.Expect(s.reconcile()).To(Equal(overlap), stale)
		}
	})
}

func TestTellsEach(t *testing.T) {
	for at, which := range []string{"first", "second"} {
		t.Run("When the "+which+" webhook alone has lost its CA bundle, it should be set again", func(t *testing.T) {
			s := newWorld(t, operatorwebhook.Configuration(operatorNamespace))
			s.reconcile()
			config := &admissionv1.MutatingWebhookConfiguration{}
			s.Expect(s.client.Get(s.ctx, client.ObjectKey{Name: operatorwebhook.Name}, config)).To(Succeed())
			config.Webhooks[at].ClientConfig.CABundle = nil
			s.Expect(s.client.Update(s.ctx, config)).To(Succeed())
			s.reconcile()
			s.trusted()
		})
	}
}

func TestKindChangedMeanwhile(t *testing.T) {
	t.Run("When a CRD changes between read and write, it should conflict and be read again", func(t *testing.T) {
		s := newWorld(t, crd("ours", operatorNamespace))
		whole := s.cert.Reader
		s.cert.Reader = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if err := c.List(ctx, list, opts...); err != nil {
					return err
				}
				kind := &apiextensionsv1.CustomResourceDefinition{}
				s.Expect(c.Get(ctx, client.ObjectKey{Name: "ours"}, kind)).To(Succeed())
				operatorwebhook.Convert(kind, "capi-system")
				kind.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("theirs")
				return c.Update(ctx, kind)
			},
		})
		result, err := s.cert.Reconcile(s.ctx, ctrl.Request{})
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(result.RequeueAfter).To(Equal(retry))
		s.cert.Reader = whole
		s.Expect(s.reconcile()).To(Equal(recheck))
		s.Expect(s.converts("ours")).To(Equal([]byte("theirs")), "it is theirs now")
	})
}
