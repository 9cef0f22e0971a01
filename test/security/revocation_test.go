// SPDX-License-Identifier: Apache-2.0

package security

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/revocation"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// issued returns a configuration with a certificate of node worker-1, issued for a request as the guest's signer issues
// them.
func (g *guest) issued(request string) *rest.Config {
	g.t.Helper()
	config := g.users("system:node:worker-1", "system:nodes")
	csr := &certificatesv1.CertificateSigningRequest{}
	g.Expect(g.admin.Get(g.t.Context(), client.ObjectKey{Name: request}, csr)).To(Succeed())
	csr.Status.Certificate = config.CertData
	g.Expect(g.admin.SubResource("status").Update(g.t.Context(), csr)).To(Succeed())
	return config
}

// revoking runs the config operator's reconcile of Machines and certificates.
func (g *guest) revoking() {
	g.t.Helper()
	r := &revocation.Reconciler{Guest: g.admin, Management: g.client, Clock: clock.RealClock{}}
	_, err := r.Reconcile(g.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: g.hosted(), Name: fixture.ClusterName}})
	g.Expect(err).NotTo(HaveOccurred())
}

// records returns the states of the records of a Machine's certificates.
func (g *guest) records() map[string]string {
	g.t.Helper()
	list := &corev1.ConfigMapList{}
	g.Expect(g.admin.List(g.t.Context(), list, client.InNamespace("kube-system"), client.HasLabels{"hypershift.openshift.io/node-credentials"})).To(Succeed())
	states := map[string]string{}
	for _, cm := range list.Items {
		states[cm.Name] = cm.Labels["hypershift.openshift.io/node-credentials"]
	}
	return states
}

// leave deletes a Machine, which is gone when MAAS has released its hardware.
func (g *guest) leave() {
	g.t.Helper()
	g.Expect(g.client.Delete(g.t.Context(), g.machine)).To(Succeed())
	g.revoking()
	g.Expect(g.client.Get(g.t.Context(), client.ObjectKeyFromObject(g.machine), g.machine)).To(Succeed())
	g.machine.Finalizers = nil
	g.Expect(g.client.Update(g.t.Context(), g.machine)).To(Succeed())
}

// kubelets grants kubelets the permissions of the Node authorizer, which the test's API server does not have.
func (g *guest) kubelets() {
	g.t.Helper()
	g.Expect(g.admin.Create(g.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubelets"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:nodes"}},
	})).To(Succeed())
	g.mayIn(g.by(g.users("system:node:worker-1", "system:nodes")), "create", "coordination.k8s.io", "leases", "kube-node-lease")
}

// writes tries the write operations that a kubelet's certificate permits, by name.
func (g *guest) writes(kubelet client.Client) map[string]error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", GenerateName: "x-"}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	status := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	return map[string]error{
		"a token of the successor's Pod": kubelet.SubResource("token").Create(g.t.Context(), account, &authenticationv1.TokenRequest{}),
		"its successor's Node":           kubelet.Status().Patch(g.t.Context(), status, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"`+time.Now().String()+`"}}`))),
		"a Node of its own":              kubelet.Create(g.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "worker-"}}),
		"a lease":                        kubelet.Create(g.t.Context(), lease),
		"another certificate": kubelet.Create(g.t.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}, Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}, Request: g.request("worker-1", nil)},
		}),
	}
}

func TestCertificateOfAMachineThatIsGone(t *testing.T) {
	g := newGuest(t, "revoked")
	g.configured()
	g.kubelets()
	g.Expect(g.admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}})).To(Succeed())
	g.Expect(g.admin.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})).To(Succeed())
	node := g.as("system:node:worker-1", "system:nodes")
	g.Expect(g.ask(node, "renewal")).To(Equal(certificatesv1.CertificateApproved))
	config := g.issued("renewal")
	thief := g.by(config)
	g.revoking()

	t.Run("When the Machine exists, its node should be able to write", func(t *testing.T) {
		NewWithT(t).Expect(g.records()).To(Equal(map[string]string{"node-credentials-workers-a": "held"}))
		for what, err := range g.writes(thief) {
			NewWithT(t).Expect(err).NotTo(HaveOccurred(), what)
		}
	})

	g.leave()
	g.Expect(g.records()).To(Equal(map[string]string{"node-credentials-workers-a": "leaving"}), "a node is drained with its certificate")
	g.newMachine("workers-next", "worker-1")
	g.revoking()
	g.Expect(g.records()).To(Equal(map[string]string{"node-credentials-workers-a": "revoked"}))
	t.Run("When another Machine gets the hardware and the node name, the old certificate should write nothing", func(t *testing.T) {
		// An API server learns of the record through a watch.
		NewWithT(t).Eventually(func() []string {
			var done []string
			for what, err := range g.writes(thief) {
				if !apierrors.IsForbidden(err) {
					done = append(done, fmt.Sprintf("%s: %v", what, err))
				}
			}
			return done
		}, patience, "100ms").Should(BeEmpty())
		for what, err := range g.writes(thief) {
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("issued to a node whose Machine is gone")), what)
		}
	})
	t.Run("When the successor writes under the same node name, it should be allowed", func(t *testing.T) {
		for what, err := range g.writes(g.by(g.users("system:node:worker-1", "system:nodes"))) {
			NewWithT(t).Expect(err).NotTo(HaveOccurred(), what)
		}
	})
	t.Run("When the old node deletes its revocation record, it should be forbidden", func(t *testing.T) {
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "node-credentials-workers-a"}}
		NewWithT(t).Expect(apierrors.IsForbidden(thief.Delete(t.Context(), record))).To(BeTrue())
	})
	t.Run("When nothing changes, the record should not be written", func(t *testing.T) {
		before := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: "kube-system", Name: "node-credentials-workers-a"}
		NewWithT(t).Expect(g.admin.Get(t.Context(), key, before)).To(Succeed())
		g.revoking()
		after := &corev1.ConfigMap{}
		NewWithT(t).Expect(g.admin.Get(t.Context(), key, after)).To(Succeed())
		NewWithT(t).Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))
		block, _ := pem.Decode(config.CertData)
		certificate, err := x509.ParseCertificate(block.Bytes)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(after.Data).To(HaveKeyWithValue(revocation.Digest(certificate.Raw), certificate.NotAfter.UTC().Format(time.RFC3339)))
	})
}
