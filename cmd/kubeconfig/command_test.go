// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
)

func prints(t *testing.T, s *kubetest.Server, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := NewCreateCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out, said strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs(append(args, "--kubeconfig", s.Kubeconfig))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), said.String(), err
}

func TestCommand(t *testing.T) {
	serve := func(t *testing.T) *kubetest.Server {
		t.Helper()
		s := kubetest.Start(t)
		g := NewWithT(t)
		for _, objs := range [][]client.Object{cluster(t, "clusters", "a", "https://a:6443"), cluster(t, "team", "b", "https://b:6443"), cluster(t, "clusters", "young", "")} {
			for _, obj := range objs {
				hc, is := obj.(*hyperv1.HostedCluster)
				status := hyperv1.HostedClusterStatus{}
				if is {
					status = hc.Status
				}
				g.Expect(s.Client.Create(t.Context(), obj)).To(Succeed())
				if is {
					hc.Status = status
					g.Expect(s.Client.Status().Update(t.Context(), hc)).To(Succeed())
				}
			}
		}
		return s
	}
	t.Run("When one cluster is named, it should print only a working kubeconfig", func(t *testing.T) {
		g := NewWithT(t)
		out, said, err := prints(t, serve(t), "--name=a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(BeEmpty())
		config, err := clientcmd.RESTConfigFromKubeConfig([]byte(out))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Host).To(Equal("https://a:6443"))
		g.Expect(config.BearerToken).To(Equal("t"))
	})
	t.Run("When no cluster is named, it should print the kubeconfigs of all namespaces", func(t *testing.T) {
		g := NewWithT(t)
		out, _, err := prints(t, serve(t))
		g.Expect(err).NotTo(HaveOccurred())
		config, err := clientcmd.Load([]byte(out))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Contexts).To(And(HaveLen(2), HaveKey("clusters-a"), HaveKey("team-b")))
		g.Expect(config.Contexts["team-b"].Namespace).To(Equal("default"))
	})
	// A tenant with the tenant role has no permissions in the hosted namespace, and none to read namespaces.
	tenant := func(r *http.Request) bool { return strings.Contains(r.URL.Path+"/", "/namespaces/clusters-a/") }
	t.Run("When a tenant asks, it should print the copy next to the HostedCluster", func(t *testing.T) {
		g, s := NewWithT(t), serve(t)
		s.Refuse(tenant)
		out, _, err := prints(t, s, "--name=a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(ContainSubstring("server: https://a:6443/copy"))
	})
	t.Run("When a tenant's copy runs a program, it should reject the copy", func(t *testing.T) {
		g, s := NewWithT(t), serve(t)
		s.Refuse(tenant)
		copied := &corev1.Secret{}
		key := client.ObjectKey{Namespace: "clusters", Name: "a-admin-kubeconfig"}
		g.Expect(s.Client.Get(t.Context(), key, copied)).To(Succeed())
		copied.Data["kubeconfig"] = []byte(withExec)
		g.Expect(s.Client.Update(t.Context(), copied)).To(Succeed())
		out, _, err := prints(t, s, "--name=a")
		g.Expect(err).To(MatchError(ContainSubstring(
			"Secret clusters/a-admin-kubeconfig is refused: users[].user.exec runs")))
		g.Expect(out).To(BeEmpty())
	})
	for name, tt := range map[string]struct {
		args   []string
		forbid string
		says   string
	}{
		"the cluster is not up yet":           {[]string{"--name=young"}, "", "it has no kubeconfig yet: its API server is not up"},
		"the cluster is in another namespace": {[]string{"--name=b"}, "", "read HostedCluster clusters/b: "},
		"its Secret may not be read": {[]string{"--name=b", "--namespace=team"}, "/secrets/",
			"HostedCluster team/b: read Secret team/b-admin-kubeconfig: "},
		"clusters may not be listed":            {nil, "/hostedclusters", "list HostedClusters: "},
		"one of all kubeconfigs cannot be read": {nil, "/namespaces/team", "read Secret team/b-admin-kubeconfig"},
		"the command has a positional argument": {[]string{"a"}, "", `unknown command "a"`},
	} {
		t.Run("When "+name+" it should say so and print nothing that would be taken for a kubeconfig", func(t *testing.T) {
			g, s := NewWithT(t), serve(t)
			s.Refuse(func(r *http.Request) bool { return tt.forbid != "" && strings.Contains(r.URL.Path, tt.forbid) })
			out, _, err := prints(t, s, tt.args...)
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(exit.Code(err)).To(Equal(exit.Failure))
			g.Expect(out).To(BeEmpty())
		})
	}
}
