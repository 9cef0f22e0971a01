// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/cluster"
)

const key = "consumer:token:sesame"

// complete parses the flags and completes the platform, with this standard input, environment and content of the file
// "key".
func complete(t *testing.T, stdin, environment, file string, args ...string) (*Cluster, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "DIR", dir)
	}
	p := NewCluster()
	p.getenv = func(string) string { return environment }
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	p.AddFlags(flags)
	if err := flags.Parse(append(args, "--external-api-server-address", "10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	return p, p.Complete(t.Context(), cluster.Environment{
		Name: "demo", Namespace: "clusters", Stdin: strings.NewReader(stdin),
		Client: func() (client.Client, error) { t.Fatal("no cluster is needed"); return nil, nil },
	})
}

func TestAPIKeySources(t *testing.T) {
	endpoint := []string{"--maas-endpoint", "http://maas:5240/MAAS"}
	tests := []struct {
		name                     string
		stdin, environment, file string
		args                     []string
		says                     string
	}{
		{name: "When a key file is set, it should read the key from the file", file: key + "\n", args: []string{"--maas-api-key-file", "DIR/key"}},
		{name: "When the key file is -, it should read the key from stdin", stdin: key + "\n", args: []string{"--maas-api-key-file", "-"}},
		{name: "When no flag is set, it should read the key from the environment", environment: key},
		{name: "When both a key file and the environment variable are set, the file should win", environment: "a:b:c", file: key, args: []string{"--maas-api-key-file", "DIR/key"}},
		{name: "When the key is a flag, it should use the key", args: []string{"--maas-api-key", key}},
		{name: "When there is no key, it should say how to set one", says: "--maas-api-key-file"},
		{name: "When the key file is empty, it should return an error", args: []string{"--maas-api-key-file", "DIR/key"}, says: "is required"},
		{name: "When the key has two parts, it should print the expected format", environment: "sesame:token", says: "consumer:token:secret"},
		{name: "When a part of the key is empty, it should print the expected format", environment: "a::sesame", says: "consumer:token:secret"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			p, err := complete(t, tt.stdin, tt.environment, tt.file, append(tt.args, endpoint...)...)
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				g.Expect(err.Error()).NotTo(ContainSubstring("sesame"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			objs := p.Objects("clusters", "demo")
			g.Expect(objs).To(HaveLen(1))
			g.Expect(string(objs[0].(*corev1.Secret).Data["MAAS_API_KEY"])).To(Equal(key))
		})
	}
}

func TestSpellings(t *testing.T) {
	for _, tt := range []struct {
		name    string
		args    []string
		warning string
	}{
		{"When --maas-server-url is set, it should use it as the endpoint", []string{"--maas-server-url", "https://maas:5443/MAAS"}, ""},
		{"When --endpoint is set, it should use it as the endpoint", []string{"--endpoint", "https://maas:5443/MAAS"}, ""},
		{"When the key is a flag, it should use the key and print a warning", []string{"--endpoint", "https://maas:5443/MAAS", "--api-key", key}, "--maas-api-key-file"},
		{"When the endpoint is plain HTTP, it should use the endpoint and print a warning", []string{"--endpoint", "http://maas:5240/MAAS"}, "sends the API key in the clear"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			var stderr strings.Builder
			p := NewCluster()
			p.getenv = func(string) string { return key }
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			p.AddFlags(flags)
			g.Expect(flags.Parse(append(tt.args, "--external-api-server-address", "nodes.example.com"))).To(Succeed())
			g.Expect(p.Complete(t.Context(), cluster.Environment{Name: "demo", Stderr: &stderr})).To(Succeed())
			secret := p.Objects("clusters", "demo")[0].(*corev1.Secret)
			g.Expect(string(secret.Data["MAAS_ENDPOINT"])).To(Equal(tt.args[1]))
			g.Expect(string(secret.Data["MAAS_API_KEY"])).To(Equal(key))
			g.Expect(strings.Contains(stderr.String(), "Warning: ")).To(Equal(tt.warning != ""))
			g.Expect(stderr.String()).To(ContainSubstring(tt.warning))
			g.Expect(stderr.String()).NotTo(ContainSubstring("sesame"))
		})
	}
}

func TestCredentials(t *testing.T) {
	t.Run("When a credentials name is set, the Secret should have that name", func(t *testing.T) {
		g := NewWithT(t)
		p, err := complete(t, "", key, "CA\n", "--maas-endpoint", "https://maas/MAAS", "--credentials-name", "mine", "--maas-ca-bundle", "DIR/key")
		g.Expect(err).NotTo(HaveOccurred())
		hc := &hyperv1.HostedCluster{}
		p.Apply(hc)
		g.Expect(hc.Spec.Platform.MAAS.IdentityRef.Name).To(Equal("mine"))
		secret := p.Objects("clusters", "demo")[0].(*corev1.Secret)
		g.Expect(secret.Name).To(Equal("mine"))
		g.Expect(string(secret.Data["MAAS_CA_BUNDLE"])).To(Equal("CA\n"))
	})
	t.Run("When an existing Secret is set, it should create no Secret", func(t *testing.T) {
		g := NewWithT(t)
		p, err := complete(t, "", "", "", "--credentials-secret", "shared")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.Objects("clusters", "demo")).To(BeEmpty())
		hc := &hyperv1.HostedCluster{}
		p.Apply(hc)
		g.Expect(hc.Spec.Platform.MAAS.IdentityRef.Name).To(Equal("shared"))
	})
}

func TestNodePoolLeavesDefaultsToTheAPI(t *testing.T) {
	g := NewWithT(t)
	p := &NodePool{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	p.AddFlags(flags)
	g.Expect(flags.Parse(nil)).To(Succeed())
	g.Expect(p.Complete()).To(Succeed())
	pool := &hyperv1.NodePool{}
	p.Apply(pool)
	g.Expect(pool.Spec.Platform.MAAS).To(Equal(&hyperv1.MAASNodePoolPlatform{Image: "ubuntu/noble"}), "the image is one that every MAAS has")
}

func TestDiskWipe(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"When no flag is set, it should leave the field to the API defaults", nil, ""},
		{"When the flag is true, it should enable the wipe", []string{"--disk-wipe"}, "true"},
		{"When the flag is false, it should disable the wipe", []string{"--disk-wipe=false"}, "false"},
		{"When only the device is set, it should leave the switch to the API defaults", []string{"--disk-wipe-device", "/dev/vda"}, "unset"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			p := &NodePool{}
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			p.AddFlags(flags)
			g.Expect(flags.Parse(tt.args)).To(Succeed())
			wipe := p.diskWipe()
			switch tt.want {
			case "":
				g.Expect(wipe).To(BeNil())
			case "unset":
				g.Expect(wipe.Enabled).To(BeNil())
			default:
				g.Expect(*wipe.Enabled).To(Equal(tt.want == "true"))
			}
		})
	}
}

func TestPublishing(t *testing.T) {
	for args, want := range map[string]hyperv1.PublishingStrategyType{"": hyperv1.NodePort, "--expose-through-load-balancer": hyperv1.LoadBalancer} {
		t.Run("When the flags are "+args+" the API should be published by "+string(want), func(t *testing.T) {
			g := NewWithT(t)
			p, err := complete(t, "", key, "", append(strings.Fields(args), "--maas-endpoint", "http://maas:5240/MAAS")...)
			g.Expect(err).NotTo(HaveOccurred())
			hc := &hyperv1.HostedCluster{}
			p.Apply(hc)
			g.Expect(hc.Spec.Services).To(ContainElement(And(HaveField("Service", hyperv1.APIServer), HaveField("ServicePublishingStrategy.Type", want))))
			g.Expect(hc.Spec.Services).To(ContainElement(And(
				HaveField("Service", hyperv1.Ignition), HaveField("ServicePublishingStrategy.NodePort", HaveField("Address", "10.0.0.1")))))
		})
	}
}
