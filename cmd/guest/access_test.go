// SPDX-License-Identifier: Apache-2.0

package guest_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/hypershift/cmd/guest"
)

func written(t testing.TB, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	t.Helper()
	cluster := &clientcmdapi.Cluster{Server: "https://api.example:6443"}
	user := &clientcmdapi.AuthInfo{Token: "t"}
	change(cluster, user)
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": cluster},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": user},
		Contexts:  map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "c",
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestParse: a kubeconfig runs no program, reads no file and acts as no other user.
func TestParse(t *testing.T) {
	for field, change := range map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo){
		"exec": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "hunter2", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
		},
		"auth-provider": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "hunter2"}
		},
		"tokenFile":             func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.TokenFile = "/hunter2" },
		"client-certificate":    func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientCertificate = "/hunter2" },
		"client-key":            func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientKey = "/hunter2" },
		"username":              func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Password = "hunter2" },
		"user.as":               func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Impersonate = "hunter2" },
		"certificate-authority": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthority = "/hunter2" },
		"insecure-skip":         func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.InsecureSkipTLSVerify = true },
		"proxy-url":             func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.ProxyURL = "http://hunter2" },
		"server":                func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "http://hunter2" },
	} {
		t.Run("refuses "+field, func(t *testing.T) {
			_, err := guest.Parse(written(t, change))
			if err == nil || !strings.Contains(err.Error(), field) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("takes server and token", func(t *testing.T) {
		access, err := guest.Parse(written(t, func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}))
		if err != nil {
			t.Fatal(err)
		}
		if config := access.Config(); config.Host != "https://api.example:6443" || config.BearerToken != "t" {
			t.Errorf("got %v", config)
		}
	})
	for _, text := range []string{"", "{", "kind: Config\napiVersion: v1\n", strings.Repeat("#", 2<<20)} {
		if _, err := guest.Parse([]byte(text)); err == nil {
			t.Errorf("%.20q is taken for a kubeconfig", text)
		}
	}
}
