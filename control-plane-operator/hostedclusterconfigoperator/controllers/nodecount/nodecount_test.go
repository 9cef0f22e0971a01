// SPDX-License-Identifier: Apache-2.0

package nodecount

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestReconcile(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(hyperv1.AddToScheme(scheme))
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
	guest := fake.NewClientBuilder().WithScheme(scheme).Build()
	r := &Reconciler{
		Guest:        guest,
		Management:   fake.NewClientBuilder().WithScheme(scheme).WithObjects(hcp).WithStatusSubresource(hcp).Build(),
		ControlPlane: client.ObjectKeyFromObject(hcp),
	}
	count := func() *int {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: r.ControlPlane})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.Management.Get(t.Context(), r.ControlPlane, hcp)).To(Succeed())
		return hcp.Status.NodeCount
	}
	g.Expect(*count()).To(Equal(0), "no node is a number too")
	g.Expect(guest.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})).To(Succeed())
	g.Expect(*count()).To(Equal(1))
	version := hcp.ResourceVersion
	g.Expect(*count()).To(Equal(1))
	g.Expect(hcp.ResourceVersion).To(Equal(version), "the same number is not written again")
}
