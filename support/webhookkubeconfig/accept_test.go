// SPDX-License-Identifier: Apache-2.0

package webhookkubeconfig_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/hypershift/support/webhookkubeconfig"
)

func TestAccept(t *testing.T) {
	server := func(fields string) string { return "clusters: [{name: c, cluster: {" + fields + "}}]\n" }
	user := func(fields string) string {
		return server("server: 'https://h'") + "users: [{name: u, user: {" + fields + "}}]\n"
	}
	for name, tc := range map[string]struct {
		rest string
		// told is the result for a webhook that only receives data. decides is the result for a webhook that
		// authenticates or authorizes users.
		told, decides string
	}{
		"a token":                       {user("token: hunter2"), "", ""},
		"a user name and a password":    {user("username: u, password: hunter2"), "", ""},
		"no user":                       {server("server: 'https://h'"), "", ""},
		"a program":                     {user("exec: {command: /bin/hunter2, apiVersion: client.authentication.k8s.io/v1}"), "exec would run a program", "exec would run a program"},
		"a removed auth provider":       {user("auth-provider: {name: gcp}"), "auth-provider is gone", "auth-provider is gone"},
		"a token file":                  {user("tokenFile: /var/hunter2"), "tokenFile would hand out", "tokenFile would hand out"},
		"a token and a token file":      {user("token: x, tokenFile: /var/hunter2"), "tokenFile would hand out", "tokenFile would hand out"},
		"a client certificate file":     {user("client-certificate: /var/hunter2"), "would read files", "would read files"},
		"a client key file":             {user("client-key: /var/hunter2"), "would read files", "would read files"},
		"a CA file":                     {server("server: 'https://h', certificate-authority: /var/hunter2"), "certificate-authority would read a file", "certificate-authority would read a file"},
		"plain HTTP":                    {server("server: 'http://hunter2'"), "", "over an unprotected connection"},
		"TLS verification turned off":   {server("server: 'https://hunter2', insecure-skip-tls-verify: true"), "", "over an unprotected connection"},
		"HTTPS in capitals":             {server("server: 'HTTPS://hunter2'"), "", "over an unprotected connection"},
		"no scheme":                     {server("server: 'hunter2:443'"), "", "over an unprotected connection"},
		"no server":                     {server(""), "its current context has no server", "over an unprotected connection"},
		"CAs that are not certificates": {server("server: 'https://h', certificate-authority-data: aHVudGVyMg=="), "certificates that cannot be read", "certificates that cannot be read"},
		"a certificate without a key":   {user("client-certificate-data: aHVudGVyMg=="), "certificates that cannot be read", "certificates that cannot be read"},
		"an exec plugin of an unused user": {server("server: 'https://h'") + "users: [{name: u, user: {token: x}}, {name: other, user: {exec: {command: /bin/hunter2, apiVersion: client.authentication.k8s.io/v1}}}]\n",
			"exec would run a program", "exec would run a program"},
		"a CA file of an unused cluster": {"clusters: [{name: c, cluster: {server: 'https://h'}}, {name: other, cluster: {server: 'https://h', certificate-authority: /var/hunter2}}]\n",
			"would read a file", "would read a file"},
	} {
		t.Run("When a kubeconfig has "+name+", it should be accepted, or the error should name the remedy", func(t *testing.T) {
			for decides, refusal := range map[bool]string{false: tc.told, true: tc.decides} {
				g := NewWithT(t)
				accepted, err := webhookkubeconfig.Webhook{Decides: decides}.Accept([]byte(head + tc.rest))
				if refusal != "" {
					g.Expect(err).To(MatchError(ContainSubstring(refusal)))
					g.Expect(err.Error()).NotTo(Or(ContainSubstring("hunter2"), ContainSubstring("aHVudGVyMg")))
					g.Expect(accepted).To(BeNil())
					continue
				}
				g.Expect(err).NotTo(HaveOccurred())
				config, err := clientcmd.Load(accepted)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(config.CurrentContext).To(Equal("c"))
				g.Expect(strings.Contains(string(accepted), "hunter2")).To(Equal(strings.Contains(tc.rest, "hunter2")), "credentials go on as they are")
			}
		})
	}
	for name, text := range map[string]string{
		"nothing": "", "a page": "<html>hunter2", "another object": "apiVersion: v1\nkind: Secret\nmetadata: {name: hunter2}\n", "no contexts": "apiVersion: v1\nkind: Config\nclusters: [{name: hunter2}]\n",
	} {
		t.Run("When the content is "+name+", the error should say that it is not a kubeconfig and repeat nothing", func(t *testing.T) {
			_, err := webhookkubeconfig.Webhook{}.Accept([]byte(text))
			g := NewWithT(t)
			g.Expect(err).To(MatchError("it holds no kubeconfig"))
		})
	}
	t.Run("When the current context is missing, it should return an error", func(t *testing.T) {
		_, err := webhookkubeconfig.Webhook{}.Accept([]byte(strings.Replace(head, "current-context: c", "current-context: other", 1) + server("server: 'https://h'")))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("its current context has no server")))
	})
	t.Run("When a kubeconfig has unknown fields, they should be dropped", func(t *testing.T) {
		accepted, err := webhookkubeconfig.Webhook{}.Accept([]byte(head + server("server: 'https://h', unknown: hunter2")))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(accepted)).NotTo(ContainSubstring("hunter2"))
	})
}
