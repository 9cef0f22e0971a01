// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

const namespace = fixture.Namespace

// world is a real API server that is both management cluster and guest.
type world struct {
	client client.WithWatch
	writes *testenv.Writes
	hcp    *hyperv1.HostedControlPlane
	r      *Reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := testenv.Client(t, testenv.Start(t, crds.HyperShift), fixture.Scheme())
	w := &world{client: c, writes: &testenv.Writes{}, hcp: fixture.GuestControlPlane()}
	w.hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPSProxy: "http://proxy.example.com:3128", NoProxy: "corp.example.com, localhost"}}
	for _, obj := range append(fixture.HostedNamespace(), w.hcp) {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	w.hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 30443}
	if err := c.Status().Update(t.Context(), w.hcp); err != nil {
		t.Fatal(err)
	}
	counted := w.writes.Client(c)
	w.r = &Reconciler{
		Management: counted, Guest: counted,
		Clock:  clocktesting.NewFakePassiveClock(time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)),
		Lookup: func(context.Context, string) ([]string, error) { return nil, fmt.Errorf("no name is looked up here") },
	}
	return w
}

func (w *world) pass(ctx context.Context) error {
	_, err := w.r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
	return err
}

func (w *world) get(t *testing.T, namespace, name string, obj client.Object) {
	t.Helper()
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		t.Fatal(err)
	}
}

func TestResources(t *testing.T) {
	w := newWorld(t)
	g := NewWithT(t)
	ctx := t.Context()

	t.Run("When a guest is empty, it should create all that nodes need", func(t *testing.T) {
		g := NewWithT(t)
		g.Eventually(func() error { return w.pass(ctx) }).WithTimeout(timeout).Should(Succeed())

		// The test's API server writes its own address there every ten seconds. A hosted API server is configured not to do
		// that.
		g.Eventually(func(g Gomega) {
			g.Expect(w.pass(ctx)).To(Succeed())
			slice := &discoveryv1.EndpointSlice{}
			g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, slice)).To(Succeed())
			g.Expect(slice.Endpoints).To(HaveLen(1))
			g.Expect(slice.Endpoints[0].Addresses).To(Equal([]string{"192.0.2.10"}))
			g.Expect(*slice.Ports[0].Port).To(Equal(int32(30443)))
		}).WithTimeout(timeout).Should(Succeed())

		binding := &rbacv1.ClusterRoleBinding{}
		w.get(t, "", "create-csrs-for-bootstrapping", binding)
		g.Expect(binding.Subjects).To(ContainElement(HaveField("Name", "system:bootstrappers")))
	})

	t.Run("When the guest reads its Infrastructure, it should find platform None and the API address", func(t *testing.T) {
		g := NewWithT(t)
		infrastructure := &configv1.Infrastructure{}
		w.get(t, "", "cluster", infrastructure)
		g.Expect(infrastructure.Spec.PlatformSpec.Type).To(Equal(configv1.NonePlatformType))
		g.Expect(infrastructure.Status.PlatformStatus.Type).To(Equal(configv1.NonePlatformType))
		for _, name := range []string{"openshift-config", "openshift-config-managed"} {
			w.get(t, "", name, &corev1.Namespace{})
		}
		g.Expect(infrastructure.Status.APIServerURL).To(Equal("https://192.0.2.10:30443"))
		g.Expect(infrastructure.Status.InfrastructureName).To(Equal("demo-abcde"))
		g.Expect(infrastructure.Status.ControlPlaneTopology).To(Equal(configv1.ExternalTopologyMode))
		for _, obj := range []client.Object{
			&configv1.DNS{}, &configv1.Ingress{}, &configv1.Network{}, &configv1.Proxy{}, &configv1.Image{},
			&configv1.APIServer{}, &configv1.Authentication{}, &configv1.FeatureGate{}, &configv1.Scheduler{},
		} {
			w.get(t, "", "cluster", obj)
		}
		dns := &configv1.DNS{}
		w.get(t, "", "cluster", dns)
		g.Expect(dns.Spec.BaseDomain).To(Equal("demo.example.com"))
		proxy := &configv1.Proxy{}
		w.get(t, "", "cluster", proxy)
		g.Expect(proxy.Status).To(Equal(configv1.ProxyStatus{HTTPSProxy: "http://proxy.example.com:3128",
			NoProxy: ".cluster.local,.hypershift.local,.svc,10.0.0.0/24,10.132.0.0/14,127.0.0.1,192.0.2.10,corp.example.com,localhost"}))
	})

	t.Run("When nothing changes, it should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		// The test retries, since the API server may write its own address during a reconcile. An object that every
		// reconcile writes would fail all attempts.
		g.Eventually(func(g Gomega) {
			before := w.writes.Count
			result, err := w.r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(w.writes.Count).To(Equal(before))
			g.Expect(result.RequeueAfter).To(Equal(resync), "no watch tells what somebody changes in the guest")
		}).WithTimeout(timeout).Should(Succeed())
	})

	t.Run("When a user changes a managed object, it should restore the object", func(t *testing.T) {
		g := NewWithT(t)
		binding := &rbacv1.ClusterRoleBinding{}
		w.get(t, "", "create-csrs-for-bootstrapping", binding)
		binding.Subjects = nil
		g.Expect(w.client.Update(ctx, binding)).To(Succeed())
		g.Expect(w.client.Delete(ctx, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}})).To(Succeed())

		g.Eventually(func() error { return w.pass(ctx) }).WithTimeout(timeout).Should(Succeed(), "the API server may be writing its address this very moment")
		w.get(t, "", "create-csrs-for-bootstrapping", binding)
		g.Expect(binding.Subjects).NotTo(BeEmpty())
		w.get(t, "default", "kubernetes", &discoveryv1.EndpointSlice{})
	})

	t.Run("When the control plane is paused, it should not change the guest until the pause ends", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		w.get(t, namespace, "demo", hcp)
		hcp.Spec.PausedUntil = ptr.To("2026-11-20T12:30:00Z")
		g.Expect(w.client.Update(ctx, hcp)).To(Succeed())
		joining := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "create-csrs-for-bootstrapping"}}
		g.Expect(w.client.Delete(ctx, joining)).To(Succeed())
		result, err := w.r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(30 * time.Minute))
		err = w.client.Get(ctx, client.ObjectKeyFromObject(joining), joining)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())

		hcp.Spec.PausedUntil = ptr.To("2026-11-20T11:59:00Z")
		g.Expect(w.client.Update(ctx, hcp)).To(Succeed())
		g.Eventually(func() error { return w.pass(ctx) }).WithTimeout(timeout).Should(Succeed())
		w.get(t, "", "create-csrs-for-bootstrapping", joining)
	})

	t.Run("When a reconcile succeeds, it should set its own condition and keep all others", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		w.get(t, namespace, "demo", hcp)
		g.Expect(meta.IsStatusConditionTrue(hcp.Status.Conditions, string(hyperv1.ConfigOperatorReconciliationSucceeded))).To(BeTrue())
	})

	g.Expect(w.writes.Count).To(BeNumerically(">", 0))
}

// timeout is how long the API server may take to serve new kinds.
const timeout = 2 * time.Minute
