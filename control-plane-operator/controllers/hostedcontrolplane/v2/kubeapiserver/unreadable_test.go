// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/testenv"
)

func bundleOf(name, key, pem string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name}, Data: map[string]string{key: pem}}
}

// failing returns a client that cannot read one kind, or one object of it.
func failing(c client.Client, kind client.Object, name string) client.Client {
	broken := errors.New("the API server is away")
	same := func(obj any) bool {
		return strings.TrimSuffix(fmt.Sprintf("%T", obj), "List") == fmt.Sprintf("%T", kind)
	}
	return testenv.Intercept(c.(client.WithWatch), func(r testenv.Request) error {
		if same(r.Of) && (name == "" || name == r.Key.Name) {
			return broken
		}
		return r.Do()
	})
}

// TestNothingIsDecidedBlindly checks that an object that cannot be read does not count as missing. Otherwise the
// component would encrypt with a key that other API servers cannot read, or remove permissions of users.
func TestNothingIsDecidedBlindly(t *testing.T) {
	encryption := func(ctx context.Context, s *component.Scope) error { return adaptEncryption(ctx, s, &corev1.Secret{}) }
	deployment := func(ctx context.Context, s *component.Scope) error {
		_, err := New().Render(ctx, s)
		return err
	}
	refused := func(ctx context.Context, s *component.Scope) error {
		_, err := Refusals(ctx, s.Client, s.HCP)
		return err
	}
	for _, tc := range []struct {
		name   string
		kind   client.Object
		object string
		do     func(context.Context, *component.Scope) error
		want   string
	}{
		{"the key", &corev1.Secret{}, "a-key", encryption, "encryption key Secret a-key"},
		{"the current encryption configuration", &corev1.Secret{}, EncryptionSecret, encryption, "reading Secret kas-secret-encryption-config"},
		{"the Deployment", &appsv1.Deployment{}, "", encryption, "reading Deployment kube-apiserver"},
		{"the pods", &corev1.Pod{}, "", encryption, "listing the pods of kube-apiserver"},
		{"the encryption configuration for new Pods", &corev1.Secret{}, EncryptionSecret, deployment, "reading Secret kas-secret-encryption-config"},
		{"the Secret of a webhook", &corev1.Secret{}, "audit", deployment, "auditWebhook: reading Secret audit"},
		{"the Secret of a webhook during validation", &corev1.Secret{}, "audit", refused, "auditWebhook: reading Secret audit"},
		{"the CA of client certificates during validation", &corev1.ConfigMap{}, "house-ca", refused, "ConfigMap house-ca"},
		{"the CA of an issuer during validation", &corev1.ConfigMap{}, "issuer-ca", refused, "ConfigMap issuer-ca"},
		{"the CA of client certificates", &corev1.ConfigMap{}, "house-ca", func(ctx context.Context, s *component.Scope) error {
			return adaptClientSigners(ctx, s, &corev1.ConfigMap{})
		}, "ConfigMap house-ca"},
		{"the cluster's own CA of client certificates", &corev1.ConfigMap{}, "client-ca", func(ctx context.Context, s *component.Scope) error {
			return adaptClientSigners(ctx, s, &corev1.ConfigMap{})
		}, "ConfigMap client-ca"},
		{"the CA of an issuer", &corev1.ConfigMap{}, "issuer-ca", func(ctx context.Context, s *component.Scope) error {
			return adaptAuthentication(ctx, s, &corev1.ConfigMap{})
		}, "ConfigMap issuer-ca"},
		{"the kubeconfig of a webhook", &corev1.Secret{}, "audit", func(ctx context.Context, s *component.Scope) error {
			return adaptWebhooks(ctx, s, &corev1.Secret{})
		}, "auditWebhook: reading Secret audit"},
		{"the credentials of a plugin", &corev1.Secret{}, "vault-token", func(ctx context.Context, s *component.Scope) error {
			return checkCredentials(ctx, s, *vault("v:1"))
		}, "reading Secret vault-token of plugin vault"},
	} {
		t.Run("When "+tc.name+" cannot be read it should return an error", func(t *testing.T) {
			hcp := clusterWith(everyOption)
			hcp.Spec.Configuration.Authentication.OIDCProviders[0].Issuer.CertificateAuthority.Name = "issuer-ca"
			ca := string(fixture.CA(t, "house").CertPEM)
			scope := scopeOf(hcp, auditSecret(), keySecret("a-key"), bundleOf("client-ca", "ca.crt", ca), bundleOf("house-ca", "ca-bundle.crt", ca), bundleOf("issuer-ca", "ca-bundle.crt", ca))
			NewWithT(t).Expect(tc.do(t.Context(), scope)).To(Succeed(), "as long as it can be read")
			scope.Client = failing(scope.Client, tc.kind, tc.object)
			NewWithT(t).Expect(tc.do(t.Context(), scope)).To(MatchError(And(ContainSubstring(tc.want), ContainSubstring("the API server is away"))))
		})
	}
}
