// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig writes a kubeconfig with two clusters; the first is the current one.
func kubeconfig(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	for _, name := range []string{"one", "two"} {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + name + ".example:6443"}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "sesame"}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	config.CurrentContext = "one"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestConfig(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, tt := range []struct {
		name        string
		args        []string
		environment string
		host, says  string
	}{
		{name: "When a kubeconfig is set, it should use its current context", args: []string{"--kubeconfig", kubeconfig(t)}, host: "https://one.example:6443"},
		{name: "When a context is set, it should use that context", args: []string{"--kubeconfig", kubeconfig(t), "--context", "two"}, host: "https://two.example:6443"},
		{name: "When no flag is set, it should use KUBECONFIG", environment: kubeconfig(t), host: "https://one.example:6443"},
		{name: "When both the flag and KUBECONFIG are set, the flag should win", args: []string{"--kubeconfig", none}, environment: kubeconfig(t), says: none},
		{name: "When the context does not exist, it should name the context", args: []string{"--kubeconfig", kubeconfig(t), "--context", "three"}, says: "three"},
		{name: "When there is no kubeconfig, it should say how to set one", environment: none, says: "set --kubeconfig or KUBECONFIG"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", tt.environment)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			t.Setenv("HOME", t.TempDir())
			c, flags := &Connection{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
			c.AddFlags(flags)
			g.Expect(flags.Parse(tt.args)).To(Succeed())
			config, err := c.Config()
			if tt.says != "" {
				g.Expect(err).To(MatchError(And(HavePrefix("find the management cluster: "), ContainSubstring(tt.says))))
				g.Expect(err.Error()).NotTo(ContainSubstring("sesame"))
				_, err = c.Client()
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Host).To(Equal(tt.host))
			g.Expect(config.UserAgent).To(Equal("hypershift-cli"), "an audit log tells who it was")
			g.Expect(config.Burst).To(BeNumerically(">", config.QPS), "an installation is some hundred calls, and somebody waits for it")
		})
	}
}

// TestHostedNamespace checks that the names equal the operator's: a namespace name cannot contain a dot.
func TestHostedNamespace(t *testing.T) {
	for cluster, want := range map[string]string{"demo": "clusters-demo", "demo.v1.2": "clusters-demo-v1-2"} {
		NewWithT(t).Expect(HostedNamespace("clusters", cluster)).To(Equal(want))
	}
}
