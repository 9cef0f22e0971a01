// SPDX-License-Identifier: Apache-2.0

package security

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// harmless is a kubeconfig with a server; its user u is still missing.
const harmless = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
	"clusters: [{name: c, cluster: {server: 'https://hook.example'}}]\n"

// TestKubeconfigsOfTenants checks webhook kubeconfigs: the control-plane-operator of an OpenShift payload mounts them
// into its API server unchanged.
func TestKubeconfigsOfTenants(t *testing.T) {
	for tenant, tt := range map[string]struct{ user, says string }{
		"hook-runs":  {"{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}}", "exec would run a program"},
		"hook-reads": {"{tokenFile: /etc/kubernetes/secrets/svcacct-key/service-account.key}", "tokenFile would hand out a file"},
		"hook-key":   {"{client-certificate: /a, client-key: /b}", "client-certificate and client-key would read files of the API server"},
	} {
		t.Run("When the API server's webhooks of "+tenant+" want more than to be called, nothing of it should come near the API server", func(t *testing.T) {
			o := newOperator(t, tenant)
			hc := fixture.HostedCluster(o.tenant)
			hc.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "audit"}
			hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{
				Type:                      configv1.AuthenticationTypeNone,
				WebhookTokenAuthenticator: &configv1.WebhookTokenAuthenticator{KubeConfig: configv1.SecretNameReference{Name: "tokens"}},
			}}
			text := []byte(harmless + "users: [{name: u, user: " + tt.user + "}]\n")
			secret := func(name, key string) client.Object {
				return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.tenant, Name: name}, Data: map[string][]byte{key: text}}
			}
			fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), hc, secret("audit", "webhook-kubeconfig"), secret("tokens", "kubeConfig"))...)
			cluster, _ := o.pass()
			o.Expect(cluster).To(MatchError(And(
				ContainSubstring("spec.auditWebhook: the Secret "+tenant+"/audit, key webhook-kubeconfig: "+tt.says),
				ContainSubstring("webhookTokenAuthenticator.kubeConfig: the Secret "+tenant+"/tokens, key kubeConfig: "+tt.says))))
			for _, name := range []string{"audit", "tokens"} {
				err := o.client.Get(t.Context(), client.ObjectKey{Namespace: o.hosted(), Name: name}, &corev1.Secret{})
				o.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "Secret %s was handed over", name)
			}
		})
	}
}
