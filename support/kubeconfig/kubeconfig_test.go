// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/hypershift/support/kubeconfig"
)

// written returns a kubeconfig whose cluster and user a test changes.
func written(t testing.TB, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	t.Helper()
	cluster, user := &clientcmdapi.Cluster{Server: "https://api.example:6443"}, &clientcmdapi.AuthInfo{Token: "hunter2"}
	change(cluster, user)
	raw, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c", Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u",
			Namespace: "demo"}},
		Clusters: map[string]*clientcmdapi.Cluster{"c": cluster}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": user},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// refused lists the refused fields, by their names in client-go's types, with changes that set them.
var refused = map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo){
	"users[].user.exec": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		u.Exec = &clientcmdapi.ExecConfig{Command: "hunter2", APIVersion: "client.authentication.k8s.io/v1",
			InteractiveMode: "Never"}
	},
	"users[].user.auth-provider": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "hunter2"}
	},
	"users[].user.tokenFile": func(_ *clientcmdapi.Cluster,
		u *clientcmdapi.AuthInfo) {
		u.TokenFile = "/hunter2"
	},
	"users[].user.client-certificate": func(_ *clientcmdapi.Cluster,
		u *clientcmdapi.AuthInfo) {
		u.ClientCertificate = "/hunter2"
	},
	"users[].user.client-key": func(_ *clientcmdapi.Cluster,
		u *clientcmdapi.AuthInfo) {
		u.ClientKey = "/hunter2"
	},
	"users[].user.username": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Password = "hunter2" },
	"users[].user.as": func(_ *clientcmdapi.Cluster,
		u *clientcmdapi.AuthInfo) {
		u.Impersonate = "hunter2"
	},
	"users[].user.as-uid": func(_ *clientcmdapi.Cluster,
		u *clientcmdapi.AuthInfo) {
		u.ImpersonateUID = "hunter2"
	},
	"users[].user.as-groups": func(_ *clientcmdapi.Cluster,
		u *clientcmdapi.AuthInfo) {
		u.ImpersonateGroups = []string{"hunter2"}
	},
	"users[].user.as-user-extra": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		u.ImpersonateUserExtra = map[string][]string{"x": {"hunter2"}}
	},
	"clusters[].cluster.certificate-authority": func(c *clientcmdapi.Cluster,
		_ *clientcmdapi.AuthInfo) {
		c.CertificateAuthority = "/hunter2"
	},
	"clusters[].cluster.insecure-skip-tls-verify": func(c *clientcmdapi.Cluster,
		_ *clientcmdapi.AuthInfo) {
		c.InsecureSkipTLSVerify = true
	},
	"clusters[].cluster.server": func(c *clientcmdapi.Cluster,
		_ *clientcmdapi.AuthInfo) {
		c.Server = "http://hunter2"
	},
	"clusters[].cluster.proxy-url": func(c *clientcmdapi.Cluster,
		_ *clientcmdapi.AuthInfo) {
		c.ProxyURL = "https://u:hunter2@proxy"
	},
}

func TestParse(t *testing.T) {
	for field, change := range refused {
		t.Run("refuses "+field+" and names it", func(t *testing.T) {
			g := NewWithT(t)
			_, err := kubeconfig.Parse(written(t, change))
			var named *kubeconfig.FieldError
			g.Expect(errors.As(err, &named)).To(BeTrue(), "%v", err)
			g.Expect(named.Field).To(Equal(field))
			g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
		})
	}
	t.Run("refuses a field of a user that no context references", func(t *testing.T) {
		raw := strings.Replace(string(written(t, refused["users[].user.tokenFile"])), "user: u\n", "user: another\n", 1)
		_, err := kubeconfig.Parse([]byte(raw))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("tokenFile")))
	})
	for name, raw := range map[string]string{
		"nothing":                        "",
		"text":                           "hunter2",
		"a kubeconfig without a context": "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: hunter2}}]\n",
		"a context without its cluster":  "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: x, user: u}}]\n",
		"more than a Secret holds":       strings.Repeat("#", 2<<20),
		"an invalid certificate": string(written(t,
			func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientCertificateData = []byte("hunter2") })),
		"a server with a user in its URL": string(written(t,
			func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://a:hunter2@host" })),
		"a server with a query": string(written(t,
			func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://host?hunter2" })),
		"a server without a host": string(written(t,
			func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://:1" })),
		"a proxy with a file URL": string(written(t,
			func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.ProxyURL = "file:///hunter2" })),
	} {
		t.Run("refuses "+name+" and prints none of its content", func(t *testing.T) {
			g := NewWithT(t)
			_, err := kubeconfig.Parse([]byte(raw))
			g.Expect(err).To(MatchError(Not(ContainSubstring("hunter2"))))
		})
	}
	t.Run("reads server, token and namespace, and writes them back", func(t *testing.T) {
		g := NewWithT(t)
		want := &kubeconfig.Access{Server: "https://api.example:6443", Token: "hunter2", Namespace: "demo",
			TLSServerName: "n"}
		access, err := kubeconfig.Parse(written(t,
			func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.TLSServerName = "n" }))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(access).To(Equal(want))
		raw, err := access.Encode("mine")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kubeconfig.Parse(raw)).To(Equal(want))
	})
}

func TestReadFile(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	_, err := kubeconfig.ReadFile(file)
	g.Expect(err).To(MatchError(ContainSubstring("reading kubeconfig " + file)))
	g.Expect(os.WriteFile(file, written(t, refused["users[].user.exec"]), 0o600)).To(Succeed())
	_, err = kubeconfig.ReadFile(file)
	g.Expect(err).To(MatchError(And(ContainSubstring(file), ContainSubstring("users[].user.exec"))))
	g.Expect(os.WriteFile(file, written(t, func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}), 0o600)).To(Succeed())
	g.Expect(kubeconfig.ReadFile(file)).To(HaveField("Token", "hunter2"))
}

// TestEveryFieldIsDecided fails if client-go adds a field to kubeconfigs that Parse neither accepts nor refuses.
func TestEveryFieldIsDecided(t *testing.T) {
	decided := map[string]string{
		"Cluster.Server": "taken", "Cluster.TLSServerName": "taken", "Cluster.CertificateAuthorityData": "taken",
		"Cluster.ProxyURL":              "taken",
		"Cluster.InsecureSkipTLSVerify": "refused", "Cluster.CertificateAuthority": "refused",
		"Cluster.DisableCompression": "no effect on security", "Cluster.LocationOfOrigin": "not in the file",
		"Cluster.Extensions":             "not followed",
		"AuthInfo.ClientCertificateData": "taken", "AuthInfo.ClientKeyData": "taken", "AuthInfo.Token": "taken",
		"AuthInfo.ClientCertificate": "refused", "AuthInfo.ClientKey": "refused", "AuthInfo.TokenFile": "refused",
		"AuthInfo.Impersonate":    "refused",
		"AuthInfo.ImpersonateUID": "refused", "AuthInfo.ImpersonateGroups": "refused",
		"AuthInfo.ImpersonateUserExtra": "refused",
		"AuthInfo.Username":             "refused", "AuthInfo.Password": "refused", "AuthInfo.AuthProvider": "refused",
		"AuthInfo.Exec":             "refused",
		"AuthInfo.LocationOfOrigin": "not in the file", "AuthInfo.Extensions": "not followed",
	}
	for _, of := range []reflect.Type{reflect.TypeFor[clientcmdapi.Cluster](), reflect.TypeFor[clientcmdapi.AuthInfo]()} {
		for i := range of.NumField() {
			if name := of.Name() + "." + of.Field(i).Name; decided[name] == "" {
				t.Errorf("client-go reads %s of a kubeconfig, which Parse neither takes nor refuses", name)
			}
		}
	}
}

// FuzzParse parses arbitrary kubeconfigs. An accepted kubeconfig names no file, no program and no other user, and does
// not change when it is written again.
func FuzzParse(f *testing.F) {
	f.Add(written(f, func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}))
	for _, change := range refused {
		f.Add(written(f, change))
	}
	f.Add(written(f, func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		c.Extensions = map[string]runtime.Object{"x": &runtime.Unknown{Raw: []byte(`{}`),
			ContentType: runtime.ContentTypeJSON}}
	}))
	f.Add([]byte("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c}]\nclusters: [{name: '', cluster: {server: 'https://h'}}]\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		access, err := kubeconfig.Parse(raw)
		if err != nil {
			return
		}
		config, err := access.Config(kubeconfig.Options{})
		if err == nil && (config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" ||
			config.CAFile != "" ||
			config.CertFile != "" || config.KeyFile != "" || config.Insecure || config.Impersonate.UserName != "" ||
			!strings.HasPrefix(config.Host, "https://")) {
			t.Fatalf("a program, a file or another user came through: %+v", config)
		}
		text, err := access.Encode("c")
		if err != nil {
			t.Fatal(err)
		}
		again, err := kubeconfig.Parse(text)
		if err != nil || !reflect.DeepEqual(again, access) {
			t.Fatalf("written and read again it is %+v, %v, and was %+v", again, err, access)
		}
	})
}
