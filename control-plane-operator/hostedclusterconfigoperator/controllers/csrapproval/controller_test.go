// SPDX-License-Identifier: Apache-2.0

package csrapproval

import (
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/testenv"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	utilruntime.Must(hyperv1.AddToScheme(scheme))
	return scheme
}

func TestReconcile(t *testing.T) {
	g := NewWithT(t)
	config := testenv.Start(t)
	admin, err := client.New(config, client.Options{Scheme: newScheme()})
	g.Expect(err).NotTo(HaveOccurred())
	// The API server sets the requester in the request, so the client must impersonate the node bootstrapper.
	config.Impersonate.UserName, config.Impersonate.Groups = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper", []string{"system:masters"}
	bootstrapper, err := client.New(config, client.Options{Scheme: newScheme()})
	g.Expect(err).NotTo(HaveOccurred())

	m := machine("pool-a", "worker-1", "192.0.2.21")
	hcp := fixture.ControlPlane()
	management := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(hcp).WithStatusSubresource(&m).Build()
	now := clocktesting.NewFakePassiveClock(time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC))
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{
		Guest: admin, Live: admin, Management: management, Namespace: m.Namespace, Recorder: recorder,
		Pause: pause.Gate{Management: management, ControlPlane: client.ObjectKeyFromObject(hcp), Clock: now},
	}
	csr := bootstrap(t)
	csr.Spec.Username, csr.Spec.Groups = "", nil
	g.Expect(bootstrapper.Create(t.Context(), csr)).To(Succeed())
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(csr)}

	t.Run("When no Machine matches a request, it should requeue the request", func(t *testing.T) {
		g := NewWithT(t)
		result, err := r.Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(retryAfter))
		g.Expect(admin.Get(t.Context(), request.NamespacedName, csr)).To(Succeed())
		g.Expect(csr.Status.Conditions).To(BeEmpty())
	})

	t.Run("When a Machine gets its name, it should reconcile the pending requests", func(t *testing.T) {
		NewWithT(t).Expect(r.pending(t.Context())).To(ConsistOf(request))
	})

	t.Run("When a Machine matches a request of a paused cluster, it should wait until the pause ends", func(t *testing.T) {
		g := NewWithT(t)
		status := m.Status
		g.Expect(management.Create(t.Context(), &m)).To(Succeed())
		m.Status = status
		g.Expect(management.Status().Update(t.Context(), &m)).To(Succeed())
		hcp.Spec.PausedUntil = ptr.To("2026-11-20T12:30:00Z")
		g.Expect(management.Update(t.Context(), hcp)).To(Succeed())
		result, err := r.Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(30 * time.Minute))
		g.Expect(admin.Get(t.Context(), request.NamespacedName, csr)).To(Succeed())
		g.Expect(csr.Status.Conditions).To(BeEmpty())
		now.SetTime(now.Now().Add(30 * time.Minute))
	})

	t.Run("When a Machine matches a request, it should approve the request", func(t *testing.T) {
		g := NewWithT(t)
		_, err := r.Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(admin.Get(t.Context(), request.NamespacedName, csr)).To(Succeed())
		g.Expect(csr.Status.Conditions).To(ConsistOf(HaveField("Type", certificatesv1.CertificateApproved)))
		g.Expect(r.pending(t.Context())).To(BeEmpty())
	})

	t.Run("When another worker requests the identity of a Machine, it should deny it and emit an event", func(t *testing.T) {
		g := NewWithT(t)
		theft := bootstrap(t)
		theft.Name, theft.Spec.Username, theft.Spec.Groups = "theft", "", nil
		g.Expect(bootstrapper.Create(t.Context(), theft)).To(Succeed())
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(theft)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(theft), theft)).To(Succeed())
		g.Expect(theft.Status.Conditions).To(ConsistOf(HaveField("Type", certificatesv1.CertificateDenied)))
		g.Expect(recorder.Events).To(Receive(ContainSubstring("Warning NodeIdentityRefused")))
	})

	t.Run("When the guest has a token for each Machine, shared credentials should be valid for older Machines only", func(t *testing.T) {
		g := NewWithT(t)
		right := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hypershift:ignition-server"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "hypershift:ignition-server"}}
		g.Expect(admin.Create(t.Context(), right)).To(Succeed())
		for i, tt := range []struct {
			node string
			age  time.Duration
			want certificatesv1.RequestConditionType
		}{
			{"worker-8", -time.Hour, certificatesv1.CertificateApproved},
			{"worker-9", replacing / 2, certificatesv1.CertificateApproved},
			{"worker-10", replacing + time.Minute, certificatesv1.CertificateDenied},
		} {
			m := machine("pool-"+tt.node, tt.node, "192.0.2.3")
			m.CreationTimestamp = metav1.NewTime(right.CreationTimestamp.Add(tt.age))
			g.Expect(management.Create(t.Context(), &m)).To(Succeed())
			m.Status = machine("", tt.node, "192.0.2.3").Status
			g.Expect(management.Status().Update(t.Context(), &m)).To(Succeed())
			csr := bootstrap(t, func(r *x509.CertificateRequest) { r.Subject = nodeSubject(tt.node) })
			csr.Name, csr.Spec.Username, csr.Spec.Groups = fmt.Sprintf("shared-%d", i), "", nil
			g.Expect(bootstrapper.Create(t.Context(), csr)).To(Succeed())
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(csr)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(csr), csr)).To(Succeed())
			g.Expect(csr.Status.Conditions).To(ConsistOf(HaveField("Type", tt.want)), tt.node)
		}
	})

	t.Run("When a request is deleted or decided, it should do nothing", func(t *testing.T) {
		g := NewWithT(t)
		_, err := r.Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "gone"}})
		g.Expect(err).NotTo(HaveOccurred())
	})
}
