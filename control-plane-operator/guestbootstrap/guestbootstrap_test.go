// SPDX-License-Identifier: Apache-2.0

package guestbootstrap

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/testenv"
)

func TestBind(t *testing.T) {
	g := NewWithT(t)
	config := testenv.Start(t)
	admin, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	g.Expect(err).NotTo(HaveOccurred())
	config.Impersonate.UserName = "system:hosted-cluster-config"
	operator, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(operator.List(t.Context(), &rbacv1.ClusterRoleList{})).NotTo(Succeed(), "it is nobody before")
	g.Expect(Bind(t.Context(), admin)).To(Succeed())
	g.Expect(Bind(t.Context(), admin)).To(Succeed(), "a second pod start")
	g.Eventually(func() error { return operator.List(t.Context(), &rbacv1.ClusterRoleList{}) }).WithTimeout(2 * time.Minute).Should(Succeed())
}

func TestRun(t *testing.T) {
	t.Run("When the kubeconfig is missing, it should return an error at once", func(t *testing.T) {
		NewWithT(t).Expect(run(t.Context(), "missing")).To(
			MatchError(ContainSubstring("--kubeconfig: reading kubeconfig missing")))
	})
	t.Run("When the API server does not answer, it should retry until the context is cancelled", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "kubeconfig")
		text := "apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\n" +
			"contexts: [{name: x, context: {cluster: x}}]\ncurrent-context: x\n"
		g.Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		g.Expect(run(ctx, path)).To(MatchError(context.DeadlineExceeded))
	})
}
