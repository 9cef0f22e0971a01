// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/testenv"
)

const namespace = fixture.Namespace

// releases provides payloads by image.
type releases map[string]releaseinfo.Payload

func (r releases) Lookup(_ context.Context, image string, _ []byte) (*releaseinfo.ReleaseImage, error) {
	p, ok := r[image]
	if !ok {
		return nil, &releaseinfo.Error{Reason: releaseinfo.ReasonNotFound, Image: image, Err: &transport.Error{
			StatusCode: http.StatusNotFound, Errors: []transport.Diagnostic{{Code: transport.ManifestUnknownErrorCode}}}}
	}
	return releaseinfo.New(image, p), nil
}

func kubernetes(version string) releaseinfo.Payload {
	p := releaseinfo.Payload{Version: version, Distribution: releaseinfo.Kubernetes, Components: map[string]string{}}
	for _, tag := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "tunnel"} {
		p.Components[tag] = "registry.example/" + tag + ":" + version
	}
	return p
}

// world is a real API server with one hosted control plane, and the operator.
type world struct {
	t      *testing.T
	client client.WithWatch
	clock  *clocktesting.FakePassiveClock
	r      *Reconciler
	hcp    *hyperv1.HostedControlPlane
	writes *testenv.Writes
}

func newWorld(t *testing.T) *world {
	t.Helper()
	direct := testenv.Client(t, testenv.Start(t, crds.HyperShift), fixture.Scheme())
	w := worldOn(t, direct, fixture.ControlPlane())
	for _, obj := range append(fixture.HostedNamespace(), w.hcp) {
		w.create(obj)
	}
	return w
}

// worldOn runs the operator for a control plane on the given server. The control plane may be created later.
func worldOn(t *testing.T, direct client.WithWatch, hcp *hyperv1.HostedControlPlane) *world {
	t.Helper()
	w := &world{t: t, client: direct, clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second)), hcp: hcp, writes: &testenv.Writes{}}
	counted := w.writes.Client(direct)
	w.r = &Reconciler{
		Client: counted, Clock: w.clock,
		Releases: releases{
			"registry.example/release:1.36.3":    kubernetes("1.36.3"),
			"registry.example/release:1.36.4":    kubernetes("1.36.4"),
			"registry.example/release:openshift": {Version: "4.20.0", Distribution: releaseinfo.OpenShift, Components: map[string]string{"etcd": "x"}},
		},
		StaticImages: map[string]string{
			"availability-prober": "registry.example/hypershift", "hosted-cluster-config-operator": "registry.example/hypershift",
			"controlplane-operator": "registry.example/hypershift",
		},
		Infra:  &infra.Reconciler{Client: counted},
		PKI:    &pki.Reconciler{Client: counted, Clock: w.clock},
		Health: func(context.Context, component.Endpoint) error { return nil },
	}
	return w
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(name string, obj client.Object) {
	w.t.Helper()
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		w.t.Fatal(err)
	}
}

// edit changes the HostedControlPlane as the hypershift-operator does.
func (w *world) edit(change func(*hyperv1.HostedControlPlane)) {
	w.t.Helper()
	w.get("demo", w.hcp)
	change(w.hcp)
	if err := w.client.Update(w.t.Context(), w.hcp); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pass() error {
	_, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
	return err
}

// condition returns the HostedControlPlane's condition as status/reason.
func (w *world) condition(t hyperv1.ConditionType) string {
	w.t.Helper()
	w.get("demo", w.hcp)
	c := meta.FindStatusCondition(w.hcp.Status.Conditions, string(t))
	if c == nil {
		return "absent"
	}
	return string(c.Status) + "/" + c.Reason
}

// workloads returns the names of all Deployments and StatefulSets.
func (w *world) workloads() []string {
	w.t.Helper()
	names := map[string]bool{}
	deployments, sets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	if err := errors.Join(w.client.List(w.t.Context(), deployments), w.client.List(w.t.Context(), sets)); err != nil {
		w.t.Fatal(err)
	}
	for _, d := range deployments.Items {
		names[d.Name] = true
	}
	for _, s := range sets.Items {
		names[s.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// rollOut acts as the cluster's controllers and kubelets: all pods of all workloads become ready.
func (w *world) rollOut() {
	w.t.Helper()
	deployments, sets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	if err := errors.Join(w.client.List(w.t.Context(), deployments), w.client.List(w.t.Context(), sets)); err != nil {
		w.t.Fatal(err)
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
		}
		if err := w.client.Status().Update(w.t.Context(), d); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		n := *s.Spec.Replicas
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		if err := w.client.Status().Update(w.t.Context(), s); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestControlPlane(t *testing.T) {
	w := newWorld(t)
	step := func(name string, do func(t *testing.T)) {
		t.Helper()
		// The steps depend on each other, so the first failure ends the test.
		if !t.Run(name, func(t *testing.T) { w.t = t; do(t) }) {
			t.FailNow()
		}
	}

	step("When a control plane waits for a restore it should create nothing, above all no key", func(t *testing.T) {
		g := NewWithT(t)
		w.edit(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Annotations = map[string]string{hyperv1.RestoringAnnotation: "true"}
		})
		secrets, before := &corev1.SecretList{}, 0
		g.Expect(w.client.List(t.Context(), secrets)).To(Succeed())
		before = len(secrets.Items)
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.workloads()).To(BeEmpty())
		g.Expect(w.client.List(t.Context(), secrets)).To(Succeed())
		g.Expect(secrets.Items).To(HaveLen(before))
		g.Expect(w.condition(hyperv1.HostedControlPlaneAvailable)).To(Equal("False/" + hyperv1.WaitingForBackupReason))
		w.edit(func(hcp *hyperv1.HostedControlPlane) { delete(hcp.Annotations, hyperv1.RestoringAnnotation) })
	})

	step("When a control plane is new it should publish its address, create its keys and create all components", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.workloads()).To(ConsistOf("etcd", "ignition-server", "kube-apiserver", "kube-controller-manager",
			"kube-scheduler", "hosted-cluster-config-operator"))
		g.Expect(w.condition(hyperv1.InfrastructureReady)).To(Equal("True/AsExpected"))
		g.Expect(w.condition(hyperv1.EtcdAvailable)).To(HavePrefix("False/"))
		g.Expect(w.condition(hyperv1.HostedControlPlaneAvailable)).To(HavePrefix("False/"))
		g.Expect(w.condition(hyperv1.ValidReleaseInfo)).To(Equal("True/AsExpected"))
		service := &corev1.Service{}
		w.get("kube-apiserver", service)
		g.Expect(w.hcp.Status.ControlPlaneEndpoint).To(Equal(hyperv1.APIEndpoint{Host: "192.0.2.10", Port: service.Spec.Ports[0].NodePort}))
		w.get("konnectivity-server", service)
		g.Expect(w.hcp.Status.TunnelAddresses).To(Equal([]string{fmt.Sprintf("192.0.2.10:%d", service.Spec.Ports[0].NodePort)}))
		g.Expect(w.hcp.Status.KubeConfig).To(Equal(&hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}))
		g.Expect(w.hcp.Finalizers).To(ContainElement(Finalizer))
	})

	step("When the components are rolled out it should become available", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.hcp.Status.Ready).To(BeFalse())
		w.rollOut()
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.condition(hyperv1.HostedControlPlaneAvailable)).To(Equal("True/AsExpected"))
		g.Expect(w.condition(hyperv1.HostedControlPlaneDegraded)).To(Equal("False/AsExpected"))
		g.Expect(w.hcp.Status.Ready && w.hcp.Status.Initialized).To(BeTrue())
		g.Expect(w.hcp.Status.VersionStatus.History[0].State).To(Equal(configv1.PartialUpdate))
		w.guestRuns("1.36.3")
		g.Expect(w.pass()).To(Succeed())
		w.get("demo", w.hcp)
		g.Expect(w.hcp.Status.VersionStatus.History[0].State).To(Equal(configv1.CompletedUpdate))
		g.Expect(w.hcp.Status.Version).To(Equal("1.36.3"))
	})

	step("When a user deletes the Service of the API server it should recreate it with the same node port", func(t *testing.T) {
		g := NewWithT(t)
		w.get("demo", w.hcp)
		published := w.hcp.Status.ControlPlaneEndpoint
		g.Expect(w.client.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-apiserver"}})).To(Succeed())
		g.Expect(w.pass()).To(Succeed())
		service := &corev1.Service{}
		w.get("kube-apiserver", service)
		g.Expect(service.Spec.Ports[0].NodePort).To(Equal(published.Port))
		w.get("demo", w.hcp)
		g.Expect(w.hcp.Status.ControlPlaneEndpoint).To(Equal(published))
	})

	step("When nothing changes it should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.pass()).To(Succeed())
		before := w.writes.Count
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.writes.Count).To(Equal(before))
	})

	step("When a component loses its pods it should be degraded and stay available", func(t *testing.T) {
		g := NewWithT(t)
		d := &appsv1.Deployment{}
		w.get("kube-scheduler", d)
		d.Status.UnavailableReplicas, d.Status.AvailableReplicas, d.Status.ReadyReplicas = 1, 0, 0
		d.Status.Conditions[0].Status = corev1.ConditionFalse
		g.Expect(w.client.Status().Update(t.Context(), d)).To(Succeed())
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.condition(hyperv1.HostedControlPlaneDegraded)).To(Equal("True/UnavailableReplicas"))
		g.Expect(w.condition(hyperv1.HostedControlPlaneAvailable)).To(Equal("True/AsExpected"))
		w.rollOut()
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.condition(hyperv1.HostedControlPlaneDegraded)).To(Equal("False/AsExpected"))
	})

	step("When the release changes it should update etcd first, and then the others", func(t *testing.T) {
		g := NewWithT(t)
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.ReleaseImage = "registry.example/release:1.36.4" })
		imageOf := func(name string) string {
			d := &appsv1.Deployment{}
			w.get(name, d)
			return d.Spec.Template.Spec.Containers[0].Image
		}
		g.Expect(w.pass()).To(Succeed())
		g.Expect(imageOf("kube-apiserver")).To(Equal("registry.example/kube-apiserver:1.36.3"))
		g.Expect(w.condition(hyperv1.ClusterVersionProgressing)).To(Equal("True/AsExpected"))
		g.Expect(w.condition(hyperv1.HostedControlPlaneAvailable)).To(Equal("True/AsExpected"))
		for range 3 {
			w.rollOut()
			g.Expect(w.pass()).To(Succeed())
		}
		g.Expect(imageOf("kube-apiserver")).To(Equal("registry.example/kube-apiserver:1.36.4"))
		g.Expect(imageOf("kube-scheduler")).To(Equal("registry.example/kube-scheduler:1.36.4"))
		w.rollOut()
		w.guestRuns("1.36.4")
		g.Expect(w.pass()).To(Succeed())
		w.get("demo", w.hcp)
		g.Expect(w.hcp.Status.Version).To(Equal("1.36.4"))
		history := w.hcp.Status.ControlPlaneVersion.History
		g.Expect(history).To(HaveLen(2))
		g.Expect(history[0].State).To(Equal(configv1.CompletedUpdate))
		g.Expect(history[1].Version).To(Equal("1.36.3"))
	})

	step("When a release of the same version has other images it should be rolled out like a new version, etcd first", func(t *testing.T) {
		w.rebuild(t, "1.36.4")
	})

	step("When the release cannot be read it should report the cause and keep running", func(t *testing.T) {
		g := NewWithT(t)
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.ReleaseImage = "registry.example/release:gone" })
		g.Expect(w.pass()).To(MatchError(ContainSubstring("404 Not Found (manifest unknown)")))
		g.Expect(w.condition(hyperv1.ValidReleaseInfo)).To(Equal("False/NotFound"))
		g.Expect(w.condition(hyperv1.HostedControlPlaneAvailable)).To(Equal("True/AsExpected"))
	})

	step("When the release is of another distribution it should report the remedy", func(t *testing.T) {
		g := NewWithT(t)
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.ReleaseImage = "registry.example/release:openshift" })
		g.Expect(w.pass()).To(Succeed())
		c := meta.FindStatusCondition(refreshed(w).Status.Conditions, string(hyperv1.ValidReleaseInfo))
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Message).To(ContainSubstring("control-plane-operator-image"))
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.ReleaseImage = "registry.example/release:1.36.4" })
		g.Expect(w.pass()).To(Succeed())
	})

	step("When reconciliation is paused it should change nothing until the pause ends", func(t *testing.T) {
		g := NewWithT(t)
		until := w.clock.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.PausedUntil = &until })
		g.Expect(w.client.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-scheduler"}})).To(Succeed())
		result, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(BeNumerically("<=", 10*time.Minute))
		g.Expect(w.workloads()).NotTo(ContainElement("kube-scheduler"))
		g.Expect(w.condition(hyperv1.ReconciliationActive)).To(HavePrefix("False/"))
		g.Expect(w.condition(hyperv1.InfrastructureReady)).To(Equal("True/AsExpected"))
		w.clock.SetTime(w.clock.Now().Add(11 * time.Minute))
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.workloads()).To(ContainElement("kube-scheduler"))
		g.Expect(w.condition(hyperv1.ReconciliationActive)).To(Equal("True/AsExpected"))
	})

	step("When the cluster names an autoscaler it should run it, and delete it with the annotation", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.workloads()).NotTo(ContainElement("cluster-autoscaler"), "the payload has none")
		w.edit(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Annotations = map[string]string{hyperv1.ClusterAutoscalerImage: "registry.example/autoscaler:1"}
		})
		w.rollOut()
		g.Expect(w.pass()).To(Succeed())
		d := &appsv1.Deployment{}
		w.get("cluster-autoscaler", d)
		g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/autoscaler:1"))
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Annotations = nil })
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.workloads()).NotTo(ContainElement("cluster-autoscaler"))
	})

	step("When a service cannot be published as requested it should report which strategies work", func(t *testing.T) {
		g := NewWithT(t)
		var services []hyperv1.ServicePublishingStrategyMapping
		w.edit(func(hcp *hyperv1.HostedControlPlane) {
			services = slices.Clone(hcp.Spec.Services)
			hcp.Spec.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{
				Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: "api.example.com"},
			}
		})
		g.Expect(w.pass()).To(Succeed())
		c := meta.FindStatusCondition(refreshed(w).Status.Conditions, string(hyperv1.ValidHostedControlPlaneConfiguration))
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Message).To(ContainSubstring("use NodePort or LoadBalancer"))
		g.Expect(w.condition(hyperv1.HostedControlPlaneAvailable)).To(Equal("True/AsExpected"), "what runs goes on")
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Services = services })
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.condition(hyperv1.ValidHostedControlPlaneConfiguration)).To(Equal("True/AsExpected"))
	})

	step("When the operator is restricted to another release it should change nothing", func(t *testing.T) {
		g := NewWithT(t)
		w.r.OperateOnReleaseImage = "registry.example/release:other"
		g.Expect(w.client.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-scheduler"}})).To(Succeed())
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.workloads()).NotTo(ContainElement("kube-scheduler"))
		w.r.OperateOnReleaseImage = ""
	})

	step("When a control plane is deleted it should remove its finalizer", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.client.Delete(t.Context(), refreshed(w))).To(Succeed())
		g.Expect(w.pass()).To(Succeed())
		err := w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		g.Expect(err).To(HaveOccurred())
		g.Expect(w.pass()).To(Succeed(), "one that is gone")
	})
}

func refreshed(w *world) *hyperv1.HostedControlPlane {
	w.get("demo", w.hcp)
	return w.hcp
}
