// SPDX-License-Identifier: Apache-2.0

package webhookkubeconfig_test

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/hypershift/support/webhookkubeconfig"
)

const head = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"

// FuzzAccept reads a tenant's input. An accepted kubeconfig names no file and no program, and its output is accepted
// again.
func FuzzAccept(f *testing.F) {
	for _, rest := range []string{
		"clusters: [{name: c, cluster: {server: 'https://h'}}]\nusers: [{name: u, user: {token: hunter2}}]\n",
		"clusters: [{name: c, cluster: {server: 'http://h', insecure-skip-tls-verify: true}}]\n",
		"clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: /etc/passwd}}]\n",
		"clusters: [{name: c, cluster: {server: 'https://h'}}]\nusers: [{name: u, user: {exec: {command: /bin/sh}}}]\n",
		"clusters: [{name: c, cluster: {server: 'https://h'}}]\nusers: [{name: u, user: {tokenFile: /x, client-key: /y}}]\n",
		"clusters: [{name: c, cluster: {server: 'https://h', proxy-url: 'http://p', tls-server-name: x}}]\nusers: null\n",
		"clusters: [{name: c}]\n", "clusters: [{name: c, cluster: null}]\nusers: [{name: u, user: null}]\n",
	} {
		f.Add([]byte(head+rest), true)
		f.Add([]byte(head+rest), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, decides bool) {
		hook := webhookkubeconfig.Webhook{Decides: decides}
		accepted, err := hook.Accept(raw)
		if err != nil {
			return
		}
		config, err := clientcmd.Load(accepted)
		if err != nil {
			t.Fatalf("what was written out cannot be read: %v", err)
		}
		for _, user := range config.AuthInfos {
			if user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "" {
				t.Fatalf("a program or a file came through: %s", accepted)
			}
		}
		for _, cluster := range config.Clusters {
			if cluster.CertificateAuthority != "" || decides && (cluster.InsecureSkipTLSVerify || !strings.HasPrefix(cluster.Server, "https://")) {
				t.Fatalf("a file, or a server that proves nothing, came through: %s", accepted)
			}
		}
		if again, err := hook.Accept(accepted); err != nil || !bytes.Equal(again, accepted) {
			t.Fatalf("the second time it was %v: %s", err, again)
		}
	})
}
