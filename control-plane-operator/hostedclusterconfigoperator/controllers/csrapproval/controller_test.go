package csrapproval

import (
	"testing"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift/hypershift/support/testenv"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	return scheme
}

func TestReconcile(t *testing.T) {
	g := NewWithT(t)
	config := testenv.Start(t)
	admin, err := client.New(config, client.Options{Scheme: newScheme()})
	g.Expect(err).NotTo(HaveOccurred())
	// The API server writes who asks into the request, so the request must come from the node bootstrapper.
	config.Impersonate.UserName, config.Impersonate.Groups = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper", []string{"system:masters"}
	bootstrapper, err := client.New(config, client.Options{Scheme: newScheme()})
	g.Expect(err).NotTo(HaveOccurred())

	m := machine("pool-a", "worker-1", "192.0.2.21")
	management := fake.NewClientBuilder().WithScheme(newScheme()).WithStatusSubresource(&m).Build()
	r := &Reconciler{Guest: admin, Management: management, Namespace: m.Namespace}
	csr := bootstrap(t)
	csr.Spec.Username, csr.Spec.Groups = "", nil
	g.Expect(bootstrapper.Create(t.Context(), csr)).To(Succeed())
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(csr)}

	t.Run("When no machine vouches for a request it should wait", func(t *testing.T) {
		g := NewWithT(t)
		result, err := r.Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(retryAfter))
		g.Expect(admin.Get(t.Context(), request.NamespacedName, csr)).To(Succeed())
		g.Expect(csr.Status.Conditions).To(BeEmpty())
	})

	t.Run("When a machine learns its name it should be asked about the requests that wait", func(t *testing.T) {
		NewWithT(t).Expect(r.pending(t.Context(), &m)).To(ConsistOf(request))
	})

	t.Run("When a machine vouches for a request it should be approved", func(t *testing.T) {
		g := NewWithT(t)
		status := m.Status
		g.Expect(management.Create(t.Context(), &m)).To(Succeed())
		m.Status = status
		g.Expect(management.Status().Update(t.Context(), &m)).To(Succeed())
		_, err := r.Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(admin.Get(t.Context(), request.NamespacedName, csr)).To(Succeed())
		g.Expect(csr.Status.Conditions).To(ConsistOf(HaveField("Type", certificatesv1.CertificateApproved)))
		g.Expect(r.pending(t.Context(), &m)).To(BeEmpty())
	})

	t.Run("When a request is gone or decided it should be left alone", func(t *testing.T) {
		g := NewWithT(t)
		_, err := r.Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "gone"}})
		g.Expect(err).NotTo(HaveOccurred())
	})
}
