// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/manifests"
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
