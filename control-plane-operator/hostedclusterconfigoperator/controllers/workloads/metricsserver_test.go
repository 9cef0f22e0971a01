// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// metricsAPI returns the APIService of metrics-server; nil if it is not registered.
func (w *world) metricsAPI() *unstructured.Unstructured {
	w.t.Helper()
	api := &unstructured.Unstructured{}
	api.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	err := w.client.Get(w.t.Context(), client.ObjectKey{Name: "v1beta1.metrics.k8s.io"}, api)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return api
}

// metricsRun acts as the guest's controllers for metrics-server.
func (w *world) metricsRun(available int32) {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.get(guestNS, "metrics-server", d)
	status := corev1.ConditionFalse
	if available > 0 {
		status = corev1.ConditionTrue
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1,
		ReadyReplicas: available, AvailableReplicas: available,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: status}},
	}
	w.must(w.client.Status().Update(w.t.Context(), d))
}

func (w *world) publishTunnel(addresses ...string) {
	w.t.Helper()
	hcp := &hyperv1.HostedControlPlane{}
	w.get(namespace, "demo", hcp)
	hcp.Status.TunnelAddresses = addresses
	w.must(w.client.Status().Update(w.t.Context(), hcp))
}

// metricsFollowAvailability checks when the guest has metrics-server, and when its API is registered.
func metricsFollowAvailability(w *world, step func(string, func(*testing.T))) {
	w.t.Helper()
	missing := func() bool {
		err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: guestNS, Name: "metrics-server"}, &appsv1.Deployment{})
		return apierrors.IsNotFound(err)
	}
	step("runs metrics-server if the release has its image and the tunnel", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(missing()).To(BeTrue(), "the release has none")
		with := release("1.36.4")
		with["tunnel"], with["metrics-server"] = "registry/tunnel:1.36.4", "registry/metrics-server:v0.9.0"
		w.r.Releases = with
		g.Expect(w.pass()).To(Succeed())
		g.Expect(missing()).To(BeTrue(), "no tunnel is published")
		w.publishTunnel("192.0.2.10:31234")
		g.Expect(w.pass()).To(Succeed())
		d := &appsv1.Deployment{}
		w.get(guestNS, "metrics-server", d)
		g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("registry/metrics-server:v0.9.0"))
		g.Expect(d.Spec.Template.Annotations).To(HaveKey("hypershift.openshift.io/kubelet-ca-hash"))
	})
	step("registers the metrics API while metrics-server and the tunnel are available", func(t *testing.T) {
		g := NewWithT(t)
		w.observe(2, 2, 2)
		w.metricsRun(0)
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.metricsAPI()).To(BeNil(), "metrics-server is not available yet")
		_, rollout, _ := w.told("metrics-server")
		g.Expect(rollout).To(Equal("False/WaitingForRolloutComplete"))
		w.metricsRun(1)
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.metricsAPI()).NotTo(BeNil())
		before := w.writes.Count
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.writes.Count).To(Equal(before))
		w.observe(2, 2, 0)
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.metricsAPI()).To(BeNil(), "the tunnel is not available")
		w.observe(2, 2, 2)
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.metricsAPI()).NotTo(BeNil())
	})
	step("removes metrics-server and its API if the user disables it", func(t *testing.T) {
		g := NewWithT(t)
		w.edit(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Addons = &hyperv1.AddonsSpec{MetricsServer: hyperv1.AddonDisabled}
		})
		g.Expect(w.pass()).To(Succeed())
		g.Expect(missing()).To(BeTrue())
		g.Expect(w.metricsAPI()).To(BeNil())
		w.publishTunnel()
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Addons = nil })
		w.r.Releases = release("1.36.4")
		g.Expect(w.pass()).To(Succeed())
	})
}
