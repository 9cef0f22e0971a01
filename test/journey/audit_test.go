// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestAsked(t *testing.T) {
	t.Run("When an audit log is read, it should report allowed and denied requests and unused permissions", func(t *testing.T) {
		g := NewWithT(t)
		w := &Walker{Dir: t.TempDir()}
		file := filepath.Join(w.Dir, "management/root/var/log/kubernetes/audit.log")
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(file, []byte(`{"verb":"watch","user":{"username":"system:serviceaccount:ns:a"},"objectRef":{"resource":"pods","apiVersion":"v1"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"patch","user":{"username":"system:serviceaccount:ns:a"},"objectRef":{"resource":"x","apiGroup":"g","subresource":"status"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"delete","user":{"username":"system:serviceaccount:ns:b"},"objectRef":{"resource":"pods"}}
{"verb":"get","user":{"username":"system:serviceaccount:ns:a"},"requestURI":"/api"}
{"verb":"ha`), 0o600)).To(Succeed())
		asked, err := w.Asked("ns:a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(asked.Granted).To(Equal(map[string][]string{"/pods": {"watch"}}))
		g.Expect(asked.Denied).To(Equal(map[string][]string{"g/x/status": {"patch"}}))
		g.Expect(asked.Unused([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "delete"}}})).
			To(Equal([]string{"delete /pods"}))
	})
}
