// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

// kubeconfig returns the kubeconfig of a webhook, with the given cluster and user.
func kubeconfig(cluster, user string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: " + cluster + "}]\nusers: [{name: u, user: " + user + "}]\n"
}

// callers returns a cluster with both webhooks, and their Secrets.
func callers(text string) (*hyperv1.HostedControlPlane, *corev1.Secret, *corev1.Secret) {
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo"}}
	hcp.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "audit"}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{
		Type:                      configv1.AuthenticationTypeNone,
		WebhookTokenAuthenticator: &configv1.WebhookTokenAuthenticator{KubeConfig: configv1.SecretNameReference{Name: "tokens"}},
	}}
	of := func(name, key string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: name}, Data: map[string][]byte{key: []byte(text)}}
	}
	return hcp, of("audit", "webhook-kubeconfig"), of("tokens", "kubeConfig")
}

const plainServer = "{server: 'https://hook.example.com/'}"

func TestWebhooks(t *testing.T) {
	both := []string{auditWebhook, tokenWebhook}
	for _, tc := range []struct {
		name, kubeconfig string
		served           []string
		says             string
	}{
		{"a token", kubeconfig(plainServer, "{token: t0p}"), both, ""},
		{"no user", kubeconfig(plainServer, "{}"), both, ""},
		{"a program", kubeconfig(plainServer, "{exec: {apiVersion: client.authentication.k8s.io/v1, command: /usr/bin/id, interactiveMode: Never}}"), nil, "exec would run a program"},
		{"a token file", kubeconfig(plainServer, "{tokenFile: /etc/kubernetes/secrets/svcacct-key/service-account.key}"), nil, "tokenFile would hand out a file"},
		{"a client key file", kubeconfig(plainServer, "{client-certificate: /a, client-key: /b}"), nil, "use client-certificate-data"},
		{"a CA file", kubeconfig("{server: 'https://hook.example.com/', certificate-authority: /etc/passwd}", "{}"), nil, "use certificate-authority-data"},
		{"a plug-in", kubeconfig(plainServer, "{auth-provider: {name: gcp}}"), nil, "auth-provider is gone"},
		{"an invalid user that no context names", strings.Replace(kubeconfig(plainServer, "{}"), "users: [", "users: [{name: other, user: {tokenFile: /x}}, ", 1), nil, "tokenFile would"},
		{"a server without TLS", kubeconfig("{server: 'http://hook.example.com/'}", "{}"), []string{auditWebhook}, "over an unprotected connection"},
		{"a server whose certificate is not verified", kubeconfig("{server: 'https://hook.example.com/', insecure-skip-tls-verify: true}", "{}"), []string{auditWebhook}, "over an unprotected connection"},
		{"invalid certificates", kubeconfig("{server: 'https://hook.example.com/', certificate-authority-data: bm9uZQ==}", "{}"), nil, "certificates that cannot be read"},
		{"no context", "apiVersion: v1\nkind: Config\n", nil, "it holds no kubeconfig"},
		{"nothing", "", nil, "it holds no kubeconfig"},
		{"no YAML", "{t0p", nil, "it holds no kubeconfig"},
	} {
		t.Run("When the kubeconfig of a webhook has "+tc.name+" it should be accepted or refused", func(t *testing.T) {
			g := NewWithT(t)
			hcp, audit, tokens := callers(tc.kubeconfig)
			file := &corev1.Secret{}
			g.Expect(adaptWebhooks(t.Context(), &component.Scope{Client: hostedClient(audit, tokens), HCP: hcp},
				file)).To(Succeed())
			flags := strings.Join(args(hcp, 1, file.Data), "\n")
			for _, name := range both {
				wanted := ContainSubstring("-config-file=" + webhooksDir + "/" + name)
				if !slices.Contains(tc.served, name) {
					wanted = Not(wanted)
				}
				g.Expect(flags).To(wanted)
			}
			g.Expect(file.Data).To(HaveLen(len(tc.served)), "what was refused is not in reach of the API server")
			if tc.says == "" {
				g.Expect(refusals(t, hcp, audit, tokens)).To(Succeed())
				return
			}
			g.Expect(refusals(t, hcp, audit, tokens)).To(MatchError(And(ContainSubstring(tc.says), Not(ContainSubstring("t0p")))))
		})
	}
	t.Run("When the authentication type is OIDC, it should reject a token webhook", func(t *testing.T) {
		hcp, audit, tokens := callers(kubeconfig(plainServer, "{}"))
		hcp.Spec.Configuration.Authentication.Type = configv1.AuthenticationTypeOIDC
		NewWithT(t).Expect(refusals(t, hcp, audit, tokens)).To(MatchError(ContainSubstring("it needs configuration.authentication.type None")))
	})
	t.Run("When the Secret is missing, it should name the Secret", func(t *testing.T) {
		hcp, audit, _ := callers(kubeconfig(plainServer, "{}"))
		NewWithT(t).Expect(refusals(t, hcp, audit)).To(MatchError(ContainSubstring("webhookTokenAuthenticator.kubeConfig: Secret tokens, key kubeConfig: it holds no kubeconfig")))
	})
}
