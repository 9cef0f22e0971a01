// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/pki"
)

// Secret returns a Secret.
func Secret(meta metav1.ObjectMeta, data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

// Configuration returns a configuration that names the Secret of a token webhook, the ConfigMap of a client CA, and the
// Secrets of serving certificates.
func Configuration(hook, ca string, certificates ...string) *hyperv1.ClusterConfiguration {
	c := &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{ClientCA: configv1.ConfigMapNameReference{Name: ca}}}
	if hook != "" {
		c.Authentication = &configv1.AuthenticationSpec{WebhookTokenAuthenticator: &configv1.WebhookTokenAuthenticator{KubeConfig: configv1.SecretNameReference{Name: hook}}}
	}
	for _, name := range certificates {
		c.APIServer.ServingCerts.NamedCertificates = append(c.APIServer.ServingCerts.NamedCertificates,
			configv1.APIServerNamedServingCert{ServingCertificate: configv1.SecretNameReference{Name: name}})
	}
	return c
}

// WebhookKubeconfig returns the kubeconfig of a webhook, with the credentials of a user as JSON.
func WebhookKubeconfig(user string) string {
	return `{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
		"clusters":[{"name":"a","cluster":{"server":"https://hook.example"}}],"users":[{"name":"a","user":` + user + `}]}`
}

// KeyPair returns a certificate with its key.
func KeyPair(t *testing.T) *pki.KeyPair {
	t.Helper()
	pair, err := pki.NewCA(pki.Name{CommonName: "corporate"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Encrypted sets the encryption of a cluster's Secrets.
func Encrypted(spec hyperv1.SecretEncryptionSpec) func(*hyperv1.HostedCluster) {
	return func(hc *hyperv1.HostedCluster) { hc.Spec.SecretEncryption = &spec }
}

// EncryptedByPlugin sets encryption by a KMS plugin of the user with the given credentials.
func EncryptedByPlugin(credentials *corev1.LocalObjectReference) func(*hyperv1.HostedCluster) {
	return Encrypted(hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{
		Provider: hyperv1.KMSPlugin, Plugin: &hyperv1.KMSPluginSpec{Name: "vault", Credentials: credentials}}})
}
