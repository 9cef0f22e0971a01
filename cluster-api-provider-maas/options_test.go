// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/manifests"
	"github.com/openshift/hypershift/support/maas"
)

func parse(t *testing.T, args ...string) *options {
	t.Helper()
	o := defaultOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestUpstreamFlags(t *testing.T) {
	g := NewWithT(t)
	o := parse(t, "--namespace=ns", "--metrics-bind-addr=127.0.0.1:8080", "--machine-concurrency=2", "--leader-elect", "--sync-period=15m",
		"--health-addr=:9440", "--webhook-port=9443", "--feature-gates=X=true", "--v=2")
	g.Expect(o.namespace).To(Equal("ns"))
	g.Expect(managerOptions(o, &rest.Config{}).Cache.DefaultNamespaces).To(HaveLen(1), "--namespace confines it")
	g.Expect(managerOptions(o, &rest.Config{}).LeaderElectionNamespace).To(Equal("ns"))
	g.Expect(managerOptions(parse(t), &rest.Config{}).Cache.DefaultNamespaces).To(BeEmpty())
}

func TestCredentialsSecret(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("NAMESPACE", "home")
	g.Expect(parse(t).secret()).To(Equal(client.ObjectKey{}))
	g.Expect(parse(t, "--credentials-secret=s").secret()).To(Equal(client.ObjectKey{Namespace: "home", Name: "s"}))
	t.Setenv(credentialsSecretEnv, "e")
	g.Expect(parse(t, "--namespace=ns").secret()).To(Equal(client.ObjectKey{Namespace: "ns", Name: "e"}))
}

func TestEnvironment(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("MAAS_ENDPOINT", "http://h/MAAS")
	t.Setenv("MAAS_API_KEY", "a:b:c")
	g.Expect(environment()).To(Equal(map[string][]byte{"MAAS_ENDPOINT": []byte("http://h/MAAS"), "MAAS_API_KEY": []byte("a:b:c")}))
}

func TestManifestsUseFlagsThatExist(t *testing.T) {
	g := NewWithT(t)
	files, err := manifests.Release{Image: "i", Version: "1.0.0"}.Render()
	g.Expect(err).NotTo(HaveOccurred())
	var args []string
	for line := range strings.SplitSeq(string(files["infrastructure-components.yaml"]), "\n") {
		if arg, ok := strings.CutPrefix(strings.TrimSpace(line), "- --"); ok {
			args = append(args, "--"+arg)
		}
	}
	g.Expect(args).NotTo(BeEmpty())
	parse(t, args...)
}

// TestCredentialsNamespace checks that the Secret may be in its own namespace; the default is the namespace of the
// process.
func TestCredentialsNamespace(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("NAMESPACE", "home")
	t.Setenv(credentialsNamespaceEnv, "vault")
	g.Expect(parse(t).secret()).To(Equal(client.ObjectKey{}), "a namespace alone names no Secret")
	g.Expect(parse(t, "--credentials-secret=s", "--namespace=ns").secret()).To(Equal(client.ObjectKey{Namespace: "vault", Name: "s"}))
	g.Expect(parse(t, "--credentials-secret=s", "--credentials-namespace=flag").secret()).To(Equal(client.ObjectKey{Namespace: "flag", Name: "s"}))
	g.Expect(parse(t, "--credentials-secret=s", "--credentials-namespace=").secret()).To(Equal(client.ObjectKey{Namespace: "home", Name: "s"}))
}

// TestHome checks that the lease is in the namespace that the process watches, else in the namespace of its pod.
func TestHome(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("NAMESPACE", "home")
	g.Expect(managerOptions(parse(t), &rest.Config{}).LeaderElectionNamespace).To(Equal("home"))
	g.Expect(managerOptions(parse(t, "--namespace=ns"), &rest.Config{}).LeaderElectionNamespace).To(Equal("ns"))
}

// TestSecretsAreNotCached checks that reading a Secret neither requires permission to list Secrets nor keeps them in
// memory.
func TestSecretsAreNotCached(t *testing.T) {
	g := NewWithT(t)
	options := managerOptions(parse(t), &rest.Config{})
	g.Expect(options.Client.Cache.DisableFor).To(ContainElement(BeAssignableToTypeOf(&corev1.Secret{})))
	g.Expect(options.LeaderElection).To(BeFalse())
	options = managerOptions(parse(t, "--leader-elect", "--leader-elect-lease-duration=1m", "--sync-period=15m", "--health-addr=:1"), &rest.Config{})
	g.Expect(options.LeaderElection).To(BeTrue())
	g.Expect(*options.LeaseDuration).To(Equal(time.Minute))
	g.Expect(*options.Cache.SyncPeriod).To(Equal(15 * time.Minute))
	g.Expect(options.HealthProbeBindAddress).To(Equal(":1"))
}

// TestTenantGuard checks that an unreadable address policy of the operator is an error, without a fallback.
func TestTenantGuard(t *testing.T) {
	g := NewWithT(t)
	guard, err := tenantGuard()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(guard).To(BeNil(), "without an operator there are no tenants")
	t.Setenv(maas.EnvRefuseCIDRs, "")
	guard, err = tenantGuard()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(guard).NotTo(BeNil(), "that the operator refuses nothing more is said as well")
	t.Setenv(maas.EnvAllowCIDRs, "10.0.0.0/8")
	t.Setenv(maas.EnvRefuseCIDRs, "10.1.0.0/16,fd00::/8")
	guard, err = tenantGuard()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(guard.Allow).To(HaveLen(1))
	g.Expect(guard.Refuse).To(HaveLen(2))
	for _, name := range []string{maas.EnvAllowCIDRs, maas.EnvRefuseCIDRs} {
		t.Run("When "+name+" is broken, it should refuse to start", func(t *testing.T) {
			t.Setenv(name, "10.0.0.0/33")
			guard, err := tenantGuard()
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(name)))
			NewWithT(t).Expect(guard).To(BeNil())
		})
	}
}
