// SPDX-License-Identifier: Apache-2.0

package logs_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
)

// pod returns a pod of cluster demo with running containers.
func pod(name string, labels map[string]string, containers ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, Labels: labels}}
	for _, c := range containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c})
	}
	return p
}

func TestLogs(t *testing.T) {
	s := kubetest.Start(t, append(kubetest.Fleet(),
		pod("kube-apiserver-0", map[string]string{"hypershift.openshift.io/control-plane-component": "kube-apiserver"}, "kube-apiserver", "audit-logs"),
		pod("etcd-0", map[string]string{"app": "etcd"}, "etcd"))...)
	s.Logs["clusters-demo/kube-apiserver-0/kube-apiserver"] = "serving\nname \x1b[2Jx\n"
	s.Logs["clusters-demo/kube-apiserver-0/audit-logs"] = "audit\n"
	s.Logs["clusters-demo/etcd-0/etcd"] = "elected\n"
	for _, tt := range []struct {
		name, args, want string
		code             int
		says             string
	}{
		{
			name: "prints all pods, without escape sequences", args: "demo",
			want: "[etcd-0/etcd] elected\n[kube-apiserver-0/audit-logs] audit\n" +
				"[kube-apiserver-0/kube-apiserver] serving\n[kube-apiserver-0/kube-apiserver] name \\x1b[2Jx\n",
		},
		{name: "prints one component", args: "demo etcd --since 10m --tail 5", want: "[etcd-0/etcd] elected\n"},
		{name: "prints one container", args: "demo kube-apiserver -c audit-logs", want: "[kube-apiserver-0/audit-logs] audit\n"},
		{name: "lists the components", args: "demo etc", code: 1, says: `cluster clusters/demo has no component "etc"; use one of etcd, kube-apiserver`},
		{name: "says that there is no control plane yet", args: "young -n team", code: 1, says: "namespace team-young has no pods of the control plane of cluster team/young"},
		{name: "names a cluster that does not exist", args: "gone", code: 1, says: "there is no HostedCluster clusters/gone"},
		{name: "needs a cluster", args: "--follow", code: 2, says: "name a cluster"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			out, said, code := logs(t, s, strings.Fields(tt.args)...)
			g.Expect(code).To(Equal(tt.code), said)
			g.Expect(out).To(Equal(tt.want))
			g.Expect(said).To(ContainSubstring(tt.says))
		})
	}
	t.Run("says which right a tenant lacks", func(t *testing.T) {
		g := NewWithT(t)
		s.Refuse(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/namespaces/clusters-demo/") })
		_, said, code := logs(t, s, "demo")
		g.Expect(code).To(Equal(1))
		g.Expect(said).To(ContainSubstring("you have no right to list pods in namespace clusters-demo"))
	})
}

func logs(t *testing.T, s *kubetest.Server, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, said bytes.Buffer
	cmd := root.HCP()
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs(append([]string{"logs", "--kubeconfig", s.Kubeconfig}, args...))
	code = root.Run(t.Context(), cmd, &said)
	return out.String(), said.String(), code
}
