// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// runningRelease returns a scope of a cluster that runs a release.
func runningRelease(image string) *cluster.Scope {
	return clustertest.Scope(clustertest.Running(image))
}

// inside returns the metadata of an object in the hosted namespace.
func inside(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "clusters-demo", Name: name}
}

func TestSignersOfBreakGlass(t *testing.T) {
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{resource}, Verbs: verbs}
	}
	signers := func(verb string) rbacv1.PolicyRule {
		r := rule("signers", verb)
		r.ResourceNames = []string{"hypershift.openshift.io/clusters-demo.customer-break-glass", "hypershift.openshift.io/clusters-demo.sre-break-glass"}
		return r
	}
	read := rule("certificatesigningrequests", "get", "list", "watch")
	want := map[string][]rbacv1.PolicyRule{
		"clusters-demo-csr-approver": {read, rule("certificatesigningrequests/approval", "update"), signers("approve")},
		"clusters-demo-csr-signer":   {read, rule("certificatesigningrequests/status", "patch"), signers("sign")},
	}
	for name, tc := range map[string]struct {
		image, account string
		disabled       bool
	}{
		"When the payload has its own PKI operator, that operator should sign":                                       {fixture.OCPImage, "control-plane-pki-operator", false},
		"When PKI reconciliation is disabled, no operator should sign":                                               {fixture.OCPImage, "", true},
		"When the release is Kubernetes, the control-plane-operator should sign":                                     {fixture.ReleaseImage, "control-plane-operator", false},
		"When PKI reconciliation is disabled for a Kubernetes release, the control-plane-operator should still sign": {fixture.ReleaseImage, "control-plane-operator", true},
	} {
		t.Run(name, func(t *testing.T) {
			g, d, s := NewWithT(t), clustertest.NewServer(), runningRelease(tc.image)
			if tc.disabled {
				s.HC.Annotations = map[string]string{hyperv1.DisablePKIReconciliationAnnotation: ""}
			}
			_, err := Signers{Client: d.Refusing}.Reconcile(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			for name, rules := range want {
				role, binding := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
				g.Expect(d.Has(t, role)).To(Equal(tc.account != ""))
				g.Expect(d.Has(t, binding)).To(Equal(tc.account != ""))
				if tc.account == "" {
					continue
				}
				g.Expect(role.Rules).To(Equal(rules))
				g.Expect(binding.RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name}))
				g.Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.Namespace, Name: tc.account}}))
				for _, obj := range []client.Object{role, binding} {
					g.Expect(obj.GetLabels()).To(Equal(map[string]string{cluster.OwnerNamespace: "clusters", cluster.OwnerName: "demo"}))
				}
			}
		})
	}
}

func TestSignersThatCannotBe(t *testing.T) {
	theirs := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	for name, there := range map[string]client.Object{
		"the ClusterRole belongs to another cluster":        &rbacv1.ClusterRole{ObjectMeta: theirs("clusters-demo-csr-signer")},
		"the ClusterRoleBinding belongs to another cluster": &rbacv1.ClusterRoleBinding{ObjectMeta: theirs("clusters-demo-csr-approver")},
	} {
		t.Run("When "+name+", it should keep the object and return an error", func(t *testing.T) {
			g, d := NewWithT(t), clustertest.NewServer(there)
			_, err := Signers{Client: d.Refusing}.Reconcile(t.Context(), runningRelease(fixture.OCPImage))
			g.Expect(err).To(MatchError(ContainSubstring("not this cluster's")))
			g.Expect(d.Has(t, there)).To(BeTrue())
			g.Expect(there.GetLabels()).To(BeEmpty())
		})
	}
	for _, refuse := range []string{"clusters-demo-csr-approver", "clusters-demo-csr-signer", "create v1.ClusterRoleBinding /clusters-demo-csr-signer", "create v1.ClusterRole /clusters-demo-csr-approver"} {
		t.Run("When the server refuses "+refuse+", it should return the error", func(t *testing.T) {
			d := clustertest.NewServer()
			d.Refuse = refuse
			_, err := Signers{Client: d.Refusing}.Reconcile(t.Context(), runningRelease(fixture.OCPImage))
			NewWithT(t).Expect(err).To(MatchError(clustertest.ErrNotNow))
		})
	}
}

func TestConfigOperatorTells(t *testing.T) {
	role, binding := &rbacv1.Role{ObjectMeta: inside("hosted-cluster-config-operator-events")}, &rbacv1.RoleBinding{ObjectMeta: inside("hosted-cluster-config-operator-events")}
	t.Run("When the payload has a config operator, it should be allowed to write Events", func(t *testing.T) {
		g, d := NewWithT(t), clustertest.NewServer()
		_, err := ConfigOperatorEvents{Client: d.Refusing}.Reconcile(t.Context(), runningRelease(fixture.OCPImage))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Has(t, role) && d.Has(t, binding)).To(BeTrue())
		g.Expect(role.Rules).To(Equal([]rbacv1.PolicyRule{{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}}}))
		g.Expect(binding.RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: role.Name}))
		account := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "clusters-demo", Name: "hosted-cluster-config-operator"}
		// The config operator of 4.14 to 4.18 runs under this name.
		older := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "clusters-demo", Name: "hosted-cluster-config"}
		g.Expect(binding.Subjects).To(Equal([]rbacv1.Subject{account, older}))
		for _, obj := range []client.Object{role, binding} {
			g.Expect(obj.GetAnnotations()).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"))
		}
	})
	t.Run("When the config operator is the product's own, it should create no Role", func(t *testing.T) {
		g, d := NewWithT(t), clustertest.NewServer()
		_, err := ConfigOperatorEvents{Client: d.Refusing}.Reconcile(t.Context(), runningRelease(fixture.ReleaseImage))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Wrote).To(BeEmpty())
	})
	for refuse, wrote := range map[string]int{"create v1.Role ": 0, "create v1.RoleBinding": 1} {
		t.Run("When the server refuses to "+refuse+", it should return the error", func(t *testing.T) {
			g, d := NewWithT(t), clustertest.NewServer()
			d.Refuse = refuse
			_, err := ConfigOperatorEvents{Client: d.Refusing}.Reconcile(t.Context(), runningRelease(fixture.OCPImage))
			g.Expect(err).To(MatchError(clustertest.ErrNotNow))
			g.Expect(d.Wrote).To(HaveLen(wrote))
		})
	}
}
