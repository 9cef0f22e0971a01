// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	namespace = fixture.Namespace
	guestNS   = "kube-system"
)

// payload is a Provider that always returns the same release.
type payload map[string]string

func (p payload) Lookup(context.Context, string, []byte) (*releaseinfo.ReleaseImage, error) {
	return releaseinfo.New("", releaseinfo.Payload{Version: p["version"], Distribution: releaseinfo.Kubernetes, Components: p}), nil
}

func release(version string) payload {
	return payload{
		"version": version, "kube-proxy": "registry/kube-proxy:" + version, "node-network": "registry/node-network:" + version,
		"coredns": "registry/coredns:" + version,
	}
}

// world is a real API server that is both management cluster and guest.
type world struct {
	t      *testing.T
	client client.WithWatch
	writes *testenv.Writes
	r      *Reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := client.NewWithWatch(testenv.Start(t, crds.HyperShift), client.Options{Scheme: fixture.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, writes: &testenv.Writes{}}
	hcp := fixture.GuestControlPlane()
	for _, obj := range append(fixture.HostedNamespace(), hcp) {
		w.must(c.Create(t.Context(), obj))
	}
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 30443}
	w.must(c.Status().Update(t.Context(), hcp))
	counted := w.writes.Client(c)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC))
	w.r = &Reconciler{
		Management: counted, Guest: &component.Guest{Client: counted, Live: c}, Releases: release("1.36.3"),
		Clock: clock,
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pass() error {
	_, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: "demo"}})
	return err
}

func (w *world) get(namespace, name string, obj client.Object) {
	w.t.Helper()
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj))
}

func (w *world) edit(change func(*hyperv1.HostedControlPlane)) {
	w.t.Helper()
	hcp := &hyperv1.HostedControlPlane{}
	w.get(namespace, "demo", hcp)
	change(hcp)
	w.must(w.client.Update(w.t.Context(), hcp))
}

// apiServer reports that the API server runs a version, regardless of the spec.
func (w *world) apiServer(version string) {
	w.t.Helper()
	kas := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-apiserver"}}
	if err := w.client.Create(w.t.Context(), kas); !apierrors.IsAlreadyExists(err) {
		w.must(err)
	}
	w.get(namespace, "kube-apiserver", kas)
	kas.Status.Version, kas.Status.Conditions, kas.Status.ObservedGeneration = version, nil, math.MaxInt32
	for _, t := range []hyperv1.ConditionType{hyperv1.ControlPlaneComponentAvailable, hyperv1.ControlPlaneComponentRolloutComplete} {
		meta.SetStatusCondition(&kas.Status.Conditions, metav1.Condition{Type: string(t), Status: metav1.ConditionTrue, Reason: "AsExpected"})
	}
	w.must(w.client.Status().Update(w.t.Context(), kas))
}

// node creates a Ready node.
func (w *world) node(name string) {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.must(w.client.Create(w.t.Context(), node))
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.must(w.client.Status().Update(w.t.Context(), node))
}

// observe acts as the guest's controllers for all DaemonSets. It sets the numbers of nodes that should run the pod,
// that have the updated pod, and whose pod is available.
func (w *world) observe(wanted, updated, available int32) {
	w.t.Helper()
	sets := &appsv1.DaemonSetList{}
	w.must(w.client.List(w.t.Context(), sets))
	for i := range sets.Items {
		s := &sets.Items[i]
		s.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: s.Generation, DesiredNumberScheduled: wanted, UpdatedNumberScheduled: updated, NumberAvailable: available,
			CurrentNumberScheduled: wanted, NumberUnavailable: wanted - available,
		}
		w.must(w.client.Status().Update(w.t.Context(), s))
	}
}

// dns acts as the guest's controllers for CoreDNS when its pods run.
func (w *world) dns() {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.get(guestNS, "coredns", d)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
	}
	w.must(w.client.Status().Update(w.t.Context(), d))
}

// told returns the report of a component: its version, and its rollout as status/reason.
func (w *world) told(name string) (version, rollout, message string) {
	w.t.Helper()
	c := &hyperv1.ControlPlaneComponent{}
	w.get(namespace, name, c)
	condition := meta.FindStatusCondition(c.Status.Conditions, string(hyperv1.ControlPlaneComponentRolloutComplete))
	return c.Status.Version, string(condition.Status) + "/" + condition.Reason, condition.Message
}

func (w *world) imageOf(name string) string {
	w.t.Helper()
	set := &appsv1.DaemonSet{}
	w.get(guestNS, name, set)
	return set.Spec.Template.Spec.Containers[0].Image
}

func TestWorkloads(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	step := func(name string, do func(t *testing.T)) {
		t.Helper()
		// The steps depend on each other, so the first failure ends the test.
		if !t.Run(name, func(t *testing.T) { w.t = t; do(t) }) {
			t.FailNow()
		}
	}

	step("When the API server does not run the version yet it should wait and report that", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.pass()).To(Succeed())
		_, rollout, message := w.told("kube-proxy")
		g.Expect(rollout).To(Equal("False/WaitingForDependencies"))
		g.Expect(message).To(ContainSubstring("kube-apiserver"))
	})

	step("When a guest is empty it should get all components, and count as complete without nodes", func(t *testing.T) {
		g := NewWithT(t)
		w.apiServer("1.36.3")
		g.Expect(w.pass()).To(Succeed())
		w.observe(0, 0, 0)
		g.Expect(w.pass()).To(Succeed())
		for _, name := range []string{"kube-proxy", "node-network", "coredns"} {
			version, rollout, message := w.told(name)
			g.Expect(version+" "+rollout).To(Equal("1.36.3 True/AsExpected"), name+": "+message)
		}
		dns := &corev1.Service{}
		w.get(guestNS, "kube-dns", dns)
		g.Expect(dns.Spec.ClusterIP).To(Equal("10.0.0.10"))
		network := &appsv1.DaemonSet{}
		w.get(guestNS, "node-network", network)
		container := network.Spec.Template.Spec.Containers[0]
		g.Expect(container.Image).To(Equal("registry/node-network:1.36.3"))
		g.Expect(container.Args).To(ConsistOf("--cluster-network=10.132.0.0/14"))
		g.Expect(container.Env).To(ContainElement(corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "192.0.2.10"}))
		g.Expect(network.OwnerReferences).To(BeEmpty())
	})

	step("When nothing changes it should write nothing in fifty reconciles", func(t *testing.T) {
		g := NewWithT(t)
		before := w.writes.Count
		for range 50 {
			g.Expect(w.pass()).To(Succeed())
		}
		g.Expect(w.writes.Count).To(Equal(before))
	})

	step("When a user changes a managed object it should restore it", func(t *testing.T) {
		g := NewWithT(t)
		proxy := &appsv1.DaemonSet{}
		w.get(guestNS, "kube-proxy", proxy)
		proxy.Spec.Template.Spec.HostNetwork = false
		g.Expect(w.client.Update(ctx, proxy)).To(Succeed())
		g.Expect(w.pass()).To(Succeed())
		w.get(guestNS, "kube-proxy", proxy)
		g.Expect(proxy.Spec.Template.Spec.HostNetwork).To(BeTrue())
	})

	step("When nodes run it should report the new version once their pods do", func(t *testing.T) {
		g := NewWithT(t)
		w.node("worker-1")
		w.node("worker-2")
		w.r.Releases = release("1.36.4")
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.imageOf("kube-proxy")).To(Equal("registry/kube-proxy:1.36.3"), "it must not be newer than its API server")
		w.apiServer("1.36.4")
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.imageOf("kube-proxy")).To(Equal("registry/kube-proxy:1.36.4"))
		w.observe(2, 1, 1)
		g.Expect(w.pass()).To(Succeed())
		version, rollout, message := w.told("kube-proxy")
		g.Expect(version + " " + rollout).To(Equal("1.36.3 False/WaitingForRolloutComplete"))
		g.Expect(message).To(Equal("DaemonSet kube-proxy: 1 of 2 nodes updated, 1 available"))
	})

	step("When an image is broken it should name the pod and the cause", func(t *testing.T) {
		g := NewWithT(t)
		proxy := &appsv1.DaemonSet{}
		w.get(guestNS, "kube-proxy", proxy)
		g.Expect(proxy.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String()).To(Equal("10%"), "the roll-out stops by itself")
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: guestNS, Name: "kube-proxy-abcde", Labels: proxy.Spec.Template.Labels},
			Spec:       corev1.PodSpec{NodeName: "worker-1", Containers: []corev1.Container{{Name: "kube-proxy", Image: "registry/kube-proxy:1.36.4"}}},
		}
		g.Expect(w.client.Create(ctx, pod)).To(Succeed())
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "kube-proxy", Image: "registry/kube-proxy:1.36.4",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off 20s"}},
		}}
		g.Expect(w.client.Status().Update(ctx, pod)).To(Succeed())
		g.Expect(w.pass()).To(Succeed())
		version, rollout, message := w.told("kube-proxy")
		g.Expect(version + " " + rollout).To(Equal("1.36.3 False/PodsFailing"))
		g.Expect(message).To(ContainSubstring("pod kube-proxy-abcde on node worker-1: ImagePullBackOff of image registry/kube-proxy:1.36.4"))
		g.Expect(w.client.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
	})

	step("When all pods run the new version it should report that", func(t *testing.T) {
		g := NewWithT(t)
		w.observe(2, 2, 2)
		w.dns()
		g.Expect(w.pass()).To(Succeed())
		for _, name := range []string{"kube-proxy", "node-network", "coredns"} {
			version, rollout, message := w.told(name)
			g.Expect(version+" "+rollout).To(Equal("1.36.4 True/AsExpected"), name+": "+message)
		}
	})

	dnsFollowsNodes(w, step)
	dnsSettings(w, step)
	tunnelFollowsAddresses(w, step)
	metricsFollowAvailability(w, step)

	step("When the cluster is paused it should change nothing in the guest", func(t *testing.T) {
		g := NewWithT(t)
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.PausedUntil = ptr.To("true") })
		g.Expect(w.client.Delete(ctx, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: guestNS, Name: "kube-proxy"}})).To(Succeed())
		g.Expect(w.pass()).To(Succeed())
		err := w.client.Get(ctx, client.ObjectKey{Namespace: guestNS, Name: "kube-proxy"}, &appsv1.DaemonSet{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.PausedUntil = nil })
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.imageOf("kube-proxy")).To(Equal("registry/kube-proxy:1.36.4"))
	})

	step("When the control plane has a release of its own the guest should follow the cluster's", func(t *testing.T) {
		g := NewWithT(t)
		w.edit(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.ControlPlaneReleaseImage = ptr.To("registry.example/release:1.36.5")
		})
		hcp := &hyperv1.HostedControlPlane{}
		w.get(namespace, "demo", hcp)
		hcp.Status.ControlPlaneVersion.Desired.Version = "1.36.5"
		hcp.Status.ControlPlaneVersion.Desired.Image = "registry.example/release:1.36.5"
		g.Expect(w.client.Status().Update(ctx, hcp)).To(Succeed())
		w.apiServer("1.36.5")
		w.observe(2, 2, 2)
		g.Expect(w.pass()).To(Succeed())
		version, rollout, _ := w.told("kube-proxy")
		g.Expect(version + " " + rollout).To(Equal("1.36.4 True/AsExpected"))
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.ControlPlaneReleaseImage = nil })
		w.apiServer("1.36.4")
	})

	step("When the payload lacks an image it should name the image, and roll out the rest", func(t *testing.T) {
		g := NewWithT(t)
		lacking := release("1.36.4")
		delete(lacking, "node-network")
		lacking["kube-proxy"] = "registry/kube-proxy:2"
		w.r.Releases = lacking
		g.Expect(w.pass()).To(MatchError(ContainSubstring("no image for node-network")))
		g.Expect(w.imageOf("kube-proxy")).To(Equal("registry/kube-proxy:2"))
		_, rollout, message := w.told("node-network")
		g.Expect(rollout).To(Equal("False/ReconciliationError"))
		g.Expect(message).To(ContainSubstring("node-network"))
		w.r.Releases = release("1.36.4")
	})

	flannelFollowsPayload(w, step)

	step("When the user brings a network plugin it should remove its own", func(t *testing.T) {
		g := NewWithT(t)
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Networking.NetworkType = hyperv1.Other })
		g.Expect(w.pass()).To(Succeed())
		for _, key := range []client.ObjectKey{{Namespace: guestNS, Name: "node-network"}, {Namespace: namespace, Name: "node-network"}} {
			for _, obj := range []client.Object{&appsv1.DaemonSet{}, &corev1.ServiceAccount{}, &hyperv1.ControlPlaneComponent{}} {
				g.Expect(apierrors.IsNotFound(w.client.Get(ctx, key, obj))).To(BeTrue(), "%T %s", obj, key)
			}
		}
		w.edit(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Networking.AllocateNodeCIDRs = ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
		})
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.imageOf("node-network")).To(Equal("registry/node-network:1.36.4"))
	})
}
