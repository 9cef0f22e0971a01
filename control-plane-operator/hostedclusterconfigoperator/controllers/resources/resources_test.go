package resources

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
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
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/testenv"
)

const namespace = fixture.Namespace

// payload is a Provider that always gives the same release.
type payload map[string]string

func (p payload) Lookup(context.Context, string, []byte) (*releaseinfo.ReleaseImage, error) {
	return releaseinfo.New("", releaseinfo.Payload{Version: "1.36.3", Distribution: releaseinfo.Kubernetes, Components: p}), nil
}

// world is a real API server that is management cluster and guest in one.
type world struct {
	client client.WithWatch
	writes *fixture.Writes
	hcp    *hyperv1.HostedControlPlane
	r      *Reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := client.NewWithWatch(testenv.Start(t, crds.HyperShift), client.Options{Scheme: fixture.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{client: c, writes: &fixture.Writes{}, hcp: fixture.GuestControlPlane()}
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
		Releases: payload{"kube-proxy": "registry/kube-proxy", "node-network": "registry/node-network", "coredns": "registry/coredns"},
		Clock:    clocktesting.NewFakePassiveClock(time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)),
		Lookup:   func(context.Context, string) ([]string, error) { return nil, fmt.Errorf("no name is looked up here") },
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

	t.Run("When a guest is empty it should get all that nodes need", func(t *testing.T) {
		g := NewWithT(t)
		g.Eventually(func() error { return w.pass(ctx) }).WithTimeout(timeout).Should(Succeed())

		// The test's API server writes its own address there every ten seconds, which a hosted one is told not to do.
		g.Eventually(func(g Gomega) {
			g.Expect(w.pass(ctx)).To(Succeed())
			slice := &discoveryv1.EndpointSlice{}
			w.get(t, "default", "kubernetes", slice)
			g.Expect(slice.Endpoints).To(HaveLen(1))
			g.Expect(slice.Endpoints[0].Addresses).To(Equal([]string{"192.0.2.10"}))
			g.Expect(*slice.Ports[0].Port).To(Equal(int32(30443)))
		}).WithTimeout(timeout).Should(Succeed())

		dns := &corev1.Service{}
		w.get(t, "kube-system", "kube-dns", dns)
		g.Expect(dns.Spec.ClusterIP).To(Equal("10.0.0.10"))

		network := &appsv1.DaemonSet{}
		w.get(t, "kube-system", "node-network", network)
		container := network.Spec.Template.Spec.Containers[0]
		g.Expect(container.Image).To(Equal("registry/node-network"))
		g.Expect(container.Args).To(ConsistOf("--cluster-network=10.132.0.0/14"))
		g.Expect(container.Env).To(ContainElement(corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "192.0.2.10"}))

		binding := &rbacv1.ClusterRoleBinding{}
		w.get(t, "", "create-csrs-for-bootstrapping", binding)
		g.Expect(binding.Subjects).To(ContainElement(HaveField("Name", "system:bootstrappers")))
	})

	t.Run("When the guest asks what it runs on it should say platform None and where its API is", func(t *testing.T) {
		g := NewWithT(t)
		infrastructure := &configv1.Infrastructure{}
		w.get(t, "", "cluster", infrastructure)
		g.Expect(infrastructure.Status.PlatformStatus.Type).To(Equal(configv1.NonePlatformType))
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
	})

	t.Run("When nothing changes it should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		// More than one pass, for the same reason as above; an object that is written every time fails all of them.
		g.Eventually(func(g Gomega) {
			before := w.writes.Count
			g.Expect(w.pass(ctx)).To(Succeed())
			g.Expect(w.writes.Count).To(Equal(before))
		}).WithTimeout(timeout).Should(Succeed())
	})

	t.Run("When somebody changes what it keeps it should put it right", func(t *testing.T) {
		g := NewWithT(t)
		proxy := &appsv1.DaemonSet{}
		w.get(t, "kube-system", "kube-proxy", proxy)
		proxy.Spec.Template.Spec.HostNetwork = false
		proxy.Spec.Template.Spec.Containers[0].Image = "elsewhere"
		g.Expect(w.client.Update(ctx, proxy)).To(Succeed())
		g.Expect(w.client.Delete(ctx, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}})).To(Succeed())

		g.Expect(w.pass(ctx)).To(Succeed())
		w.get(t, "kube-system", "kube-proxy", proxy)
		g.Expect(proxy.Spec.Template.Spec.HostNetwork).To(BeTrue())
		g.Expect(proxy.Spec.Template.Spec.Containers[0].Image).To(Equal("registry/kube-proxy"))
		w.get(t, "default", "kubernetes", &discoveryv1.EndpointSlice{})
	})

	t.Run("When the control plane is paused it should leave the guest to its user until that is over", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		w.get(t, namespace, "demo", hcp)
		hcp.Spec.PausedUntil = ptr.To("2026-11-20T12:30:00Z")
		g.Expect(w.client.Update(ctx, hcp)).To(Succeed())
		g.Expect(w.client.Delete(ctx, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}})).To(Succeed())
		result, err := w.r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(30 * time.Minute))
		err = w.client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "kube-proxy"}, &appsv1.DaemonSet{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())

		hcp.Spec.PausedUntil = ptr.To("2026-11-20T11:59:00Z")
		g.Expect(w.client.Update(ctx, hcp)).To(Succeed())
		g.Expect(w.pass(ctx)).To(Succeed())
		w.get(t, "kube-system", "kube-proxy", &appsv1.DaemonSet{})
	})

	t.Run("When a pass succeeded it should say so in the HostedControlPlane and keep the conditions of others", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		w.get(t, namespace, "demo", hcp)
		g.Expect(meta.IsStatusConditionTrue(hcp.Status.Conditions, string(hyperv1.ConfigOperatorReconciliationSucceeded))).To(BeTrue())
	})

	t.Run("When the payload lacks an image it should name it, and do the rest", func(t *testing.T) {
		g := NewWithT(t)
		complete := w.r.Releases
		w.r.Releases = payload{"kube-proxy": "registry/kube-proxy:2", "coredns": "registry/coredns"}
		g.Expect(w.pass(ctx)).To(MatchError(ContainSubstring("no image for node-network")))
		proxy := &appsv1.DaemonSet{}
		w.get(t, "kube-system", "kube-proxy", proxy)
		g.Expect(proxy.Spec.Template.Spec.Containers[0].Image).To(Equal("registry/kube-proxy:2"))
		hcp := &hyperv1.HostedControlPlane{}
		w.get(t, namespace, "demo", hcp)
		c := meta.FindStatusCondition(hcp.Status.Conditions, string(hyperv1.ConfigOperatorReconciliationSucceeded))
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Message).To(ContainSubstring("node-network"))
		w.r.Releases = complete
	})

	t.Run("When the user brings a network it should take its own away", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		w.get(t, namespace, "demo", hcp)
		hcp.Spec.Networking.NetworkType = hyperv1.Other
		g.Expect(w.client.Update(ctx, hcp)).To(Succeed())
		g.Expect(w.pass(ctx)).To(Succeed())
		g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(hcp), hcp)).To(Succeed())
		err := w.client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "node-network"}, &appsv1.DaemonSet{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())

		hcp.Spec.Networking.AllocateNodeCIDRs = ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
		g.Expect(w.client.Update(ctx, hcp)).To(Succeed())
		g.Expect(w.pass(ctx)).To(Succeed())
		w.get(t, "kube-system", "node-network", &appsv1.DaemonSet{})
	})
	g.Expect(w.writes.Count).To(BeNumerically(">", 0))
}

// timeout is how long the API server may take to serve new kinds.
const timeout = 30 * time.Second
