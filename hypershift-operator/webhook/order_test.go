// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/pki"
)

// TestAuthorityIsToldFirst checks that a certificate is not served before the API server trusts its CA. Otherwise,
// users could not create pools.
func TestAuthorityIsToldFirst(t *testing.T) {
	down := errors.New("timed out")
	for _, tc := range []struct {
		name  string
		fails interceptor.Funcs
		says  string
	}{
		{"When the webhook configuration cannot be read", interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, is := obj.(*admissionv1.MutatingWebhookConfiguration); is {
				return down
			}
			return c.Get(ctx, key, obj, opts...)
		}}, "reading MutatingWebhookConfiguration"},
		{"When the webhook configuration cannot be written", interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if _, is := obj.(*admissionv1.MutatingWebhookConfiguration); is {
				return down
			}
			return c.Update(ctx, obj, opts...)
		}}, "setting the authority in MutatingWebhookConfiguration"},
		{"When Cluster API's CRDs cannot be listed", interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return down
		}}, "listing Cluster API's CRDs"},
		{"When a Cluster API CRD cannot be written", interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, is := obj.(*apiextensionsv1.CustomResourceDefinition); is {
				return down
			}
			return c.Patch(ctx, obj, patch, opts...)
		}}, "setting the authority in CRD ours"},
	} {
		t.Run(tc.name+", it should keep serving the previous certificate", func(t *testing.T) {
			s := newWorld(t, crd("ours", operatorNamespace), operatorwebhook.Configuration(operatorNamespace))
			s.reconcile()
			served, whole := s.trusted(), s.cert.Client
			s.Expect(s.client.Delete(s.ctx, s.secret(caSecret))).To(Succeed())
			s.cert.Client = interceptor.NewClient(s.client.(client.WithWatch), tc.fails)
			s.cert.Reader = s.cert.Client
			result, err := s.cert.Reconcile(s.ctx, ctrl.Request{})
			s.Expect(err).To(MatchError(And(ContainSubstring(tc.says), ContainSubstring("timed out"))))
			s.Expect(result).To(BeZero(), "the controller knows when to try again")
			pair, err := s.cert.Serving(nil)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(pair.Certificate[0]).To(Equal(served.Raw))

			s.cert.Client, s.cert.Reader = whole, whole
			s.reconcile()
			s.Expect(s.trusted().Equal(served)).To(BeFalse(), "the next pass ends the work")
		})
	}
	t.Run("When the webhook configuration cannot be updated, it should still update the CRDs", func(t *testing.T) {
		s := newWorld(t, crd("ours", operatorNamespace), operatorwebhook.Configuration(operatorNamespace))
		s.cert.Client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{
			Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return down }})
		_, err := s.cert.Reconcile(s.ctx, ctrl.Request{})
		s.Expect(err).To(HaveOccurred())
		s.Expect(s.converts("ours")).To(Equal(s.secret(caSecret).Data[pki.CACertKey]))
		_, err = s.cert.Serving(nil)
		s.Expect(err).To(MatchError(ContainSubstring("not made yet")))
	})
	t.Run("When a Secret cannot be written, it should not set the CA bundle", func(t *testing.T) {
		for _, secret := range []string{caSecret, servingSecret} {
			s := newWorld(t, operatorwebhook.Configuration(operatorNamespace))
			s.cert.Client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if obj.GetName() == secret {
						return down
					}
					return c.Create(ctx, obj, opts...)
				}})
			result, err := s.cert.Reconcile(s.ctx, ctrl.Request{})
			s.Expect(err).To(MatchError(ContainSubstring(secret)))
			s.Expect(result).To(BeZero(), "the controller knows when to try again")
			config := &admissionv1.MutatingWebhookConfiguration{}
			s.Expect(s.client.Get(s.ctx, client.ObjectKey{Name: operatorwebhook.Name}, config)).To(Succeed())
			s.Expect(config.Webhooks[0].ClientConfig.CABundle).To(BeEmpty())
		}
	})
}

// TestBundle checks that the API server trusts only the previous CA besides the current one, and only for an hour.
func TestBundle(t *testing.T) {
	authority := func(name string) []byte {
		pair, err := pki.EnsureCA(&corev1.Secret{}, pki.Name{CommonName: name}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return pair.CertPEM
	}
	first, second, third := authority("first"), authority("second"), authority("third")
	joined := func(all ...[]byte) string {
		var text string
		for _, one := range all {
			text += string(one)
		}
		return text
	}
	for _, tc := range []struct {
		name  string
		now   string
		young bool
		want  string
	}{
		{"When no CA was trusted, it should return the current CA", "", true, joined(second)},
		{"When another CA was trusted, it should keep that CA while the current one is new", joined(first), true, joined(second, first)},
		{"When both CAs are already trusted, it should change nothing", joined(second, first), true, joined(second, first)},
		{"When both CAs are in reverse order, it should put the current CA first", joined(first, second), true, joined(second, first)},
		{"When two other CAs were trusted, it should keep only the latest", joined(first, third), true, joined(second, first)},
		{"When the overlap is over, it should return only the current CA", joined(second, first), false, joined(second)},
		{"When only the current CA is trusted, it should change nothing", joined(second), true, joined(second)},
		{"When the bundle contains a private key, it should remove the key", "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n", true, joined(second)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(string(bundle(second, []byte(tc.now), tc.young))).To(Equal(tc.want))
		})
	}
}
