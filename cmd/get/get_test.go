// SPDX-License-Identifier: Apache-2.0

package get_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
)

// run runs a command against a server.
func run(t *testing.T, s *kubetest.Server, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, said bytes.Buffer
	cmd := root.Hypershift()
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs(append(args, "--kubeconfig", s.Kubeconfig))
	code = root.Run(t.Context(), cmd, &said)
	return out.String(), said.String(), code
}

func TestTables(t *testing.T) {
	s := kubetest.Start(t, kubetest.Fleet()...)
	for _, tt := range []struct{ name, args, want, says string }{
		{
			"lists the clusters of a namespace", "get clusters",
			"NAME  STATE      VERSION  NODES  PLATFORM  AGE  MESSAGE\n" +
				"demo  Available  1.35.4   1/2    MAAS      5d\n", "",
		},
		{
			"lists the clusters of all namespaces, without the escape sequences of tenants", "get clusters -A",
			"NAMESPACE  NAME   STATE      VERSION  NODES  PLATFORM  AGE  MESSAGE\n" +
				"clusters   demo   Available  1.35.4   1/2    MAAS      5d\n" +
				"team       young  Creating   -        0/0    MAAS      5d   PlatformCredentialsFound is False (PlatformCredentialsNotFound): " +
				"Secret \\x1b[31mmaas\\x1b[0m does not exist; create it, for 5d\n", "",
		},
		{
			"lists the NodePools with the first cause", "get np",
			"NAME     CLUSTER  STATE    NODES  AUTOSCALING  VERSION  AGE  MESSAGE\n" +
				"elastic  demo     Ready    0      0-5          1.35.4   5d\n" +
				"workers  demo     Scaling  1/2    -            1.35.4   5d   AllMachinesReady is False (NoCapacity): no machine has 64 cores, for 5d\n", "",
		},
		{
			"lists the machines with their hosts", "get machines --cluster-name demo",
			"NAME       CLUSTER  NODEPOOL  PHASE         HOST      ID      ZONE  HOST STATE  AGE\n" +
				"workers-a  demo     workers   Running       calm-ant  wq4h8c  az1   Deployed    5d\n" +
				"workers-b  demo     workers   Provisioning  -         -       -     -           5d\n", "",
		},
		{
			"lists the releases in use", "get releases",
			"VERSION  CLUSTERS  NODEPOOLS  IMAGE\n1.35.4   1         2          registry.example/release:1.35.4\n", "",
		},
		{"prints names for scripts", "get nodepools workers -o name", "nodepool.hypershift.openshift.io/workers\n", ""},
		{"says that a namespace is empty", "get clusters -n empty", "", "There are no clusters in namespace empty; use -A for all namespaces.\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			out, said, code := run(t, s, strings.Fields(tt.args)...)
			g.Expect(code).To(BeZero(), said)
			g.Expect(out).To(Equal(tt.want))
			g.Expect(said).To(Equal(tt.says))
		})
	}
}

func TestObjects(t *testing.T) {
	s := kubetest.Start(t, kubetest.Fleet()...)
	t.Run("prints one object as kubectl does", func(t *testing.T) {
		g := NewWithT(t)
		out, said, code := run(t, s, "get", "cluster", "demo", "-o", "yaml")
		g.Expect(code).To(BeZero(), said)
		g.Expect(out).To(HavePrefix("apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\n"))
		g.Expect(out).To(And(ContainSubstring("status:\n"), Not(ContainSubstring("managedFields"))))
	})
	t.Run("prints a list", func(t *testing.T) {
		g := NewWithT(t)
		out, said, code := run(t, s, "get", "nodepools", "-A", "-o", "json")
		g.Expect(code).To(BeZero(), said)
		g.Expect(out).To(And(ContainSubstring(`"kind": "List"`), ContainSubstring(`"name": "elastic"`), ContainSubstring(`"name": "workers"`)))
	})
	for args, says := range map[string]string{
		"get cluster gone":         `namespace clusters has no hostedcluster.hypershift.openshift.io "gone"; check the name and --namespace`,
		"get clusters demo -A":     "--all-namespaces lists everything",
		"get clusters -w -o json":  "--watch prints a table",
		"get nodepools -o columns": `--output "columns": use wide, json, yaml, name`,
	} {
		t.Run("refuses "+args, func(t *testing.T) {
			g := NewWithT(t)
			out, said, code := run(t, s, strings.Fields(args)...)
			g.Expect(code).NotTo(BeZero())
			g.Expect(said).To(ContainSubstring(says))
			g.Expect(out).To(BeEmpty())
		})
	}
}

// TestTenant reads with the rights of a tenant, which has none in the hosted namespaces.
func TestTenant(t *testing.T) {
	s := kubetest.Start(t, kubetest.Fleet()...)
	s.Refuse(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/namespaces/clusters-demo/") })
	for _, args := range []string{"get machines", "describe cluster demo"} {
		t.Run("says in one sentence what "+args+" leaves out", func(t *testing.T) {
			g := NewWithT(t)
			_, said, code := run(t, s, strings.Fields(args)...)
			g.Expect(code).To(BeZero(), said)
			g.Expect(said).To(HavePrefix("Machines are not shown: you have no right to list them in namespace clusters-demo"))
		})
	}
}

// TestCompletion completes the names of live objects.
func TestCompletion(t *testing.T) {
	s := kubetest.Start(t, kubetest.Fleet()...)
	for args, want := range map[string]string{
		"get clusters -A": "demo\nyoung\n:4\n", "scale nodepool": "elastic\nworkers\n:4\n", "describe machine": "workers-a\nworkers-b\n:4\n",
	} {
		t.Run("completes "+args, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", s.Kubeconfig)
			var out bytes.Buffer
			cmd := root.Hypershift()
			cmd.SetOut(&out)
			cmd.SetErr(&bytes.Buffer{})
			cmd.SetArgs(append(append([]string{"__complete"}, strings.Fields(args)...), ""))
			g.Expect(root.Run(t.Context(), cmd, &bytes.Buffer{})).To(BeZero())
			g.Expect(out.String()).To(Equal(want))
		})
	}
}

// TestWatch prints a row when it changes.
func TestWatch(t *testing.T) {
	g, s := NewWithT(t), kubetest.Start(t, kubetest.Fleet()...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, done := gbytes.NewBuffer(), make(chan int)
	cmd := root.HCP()
	cmd.SetOut(out)
	cmd.SetArgs([]string{"get", "nodepools", "workers", "-w", "--kubeconfig", s.Kubeconfig})
	go func() { done <- root.Run(ctx, cmd, &bytes.Buffer{}) }()
	g.Eventually(out).WithTimeout(time.Minute).Should(gbytes.Say(`workers  demo     Scaling  1/2 `))
	pool := &hyperv1.NodePool{}
	g.Expect(s.Client.Get(ctx, client.ObjectKey{Namespace: "clusters", Name: "workers"}, pool)).To(Succeed())
	g.Expect(s.Client.Delete(ctx, pool)).To(Succeed())
	g.Eventually(out).WithTimeout(time.Minute).Should(gbytes.Say(`workers  demo     Deleted  1/2 `))
	stop()
	g.Expect(<-done).To(BeZero(), "an interruption is the end of a watch")
}
