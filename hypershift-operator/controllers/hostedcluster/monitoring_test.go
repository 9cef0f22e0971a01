// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/rights"
)

// monitors returns the ServiceMonitors and PodMonitors of the hosted namespace, by kind and name.
func (s *world) monitors() []string {
	s.t.Helper()
	services, pods := &monitoringv1.ServiceMonitorList{}, &monitoringv1.PodMonitorList{}
	s.Expect(s.client.List(s.t.Context(), services, client.InNamespace(s.hosted()))).To(Succeed())
	s.Expect(s.client.List(s.t.Context(), pods, client.InNamespace(s.hosted()))).To(Succeed())
	found := map[string]bool{}
	for _, m := range services.Items {
		found["ServiceMonitor "+m.Name] = true
		s.Expect(m.Spec.NamespaceSelector.MatchNames).To(Equal([]string{s.hosted()}))
		s.Expect(m.Spec.Endpoints).To(HaveEach(HaveField("RelabelConfigs", ContainElement(HaveField("TargetLabel", "_id")))))
		s.Expect(m.Labels).To(HaveKeyWithValue(hyperv1.ControlPlaneNamespaceLabel, s.hosted()))
	}
	for _, m := range pods.Items {
		found["PodMonitor "+m.Name] = true
		s.Expect(m.Labels).To(HaveKeyWithValue(hyperv1.ControlPlaneComponentLabel, "control-plane-operator"))
	}
	return slices.Sorted(maps.Keys(found))
}

// TestMonitors installs a Prometheus operator while clusters exist. The operator has only the rights of an
// installation.
func TestMonitors(t *testing.T) {
	c := fixture.Start(t)
	kubernetes, payload := newWorld(t, c, "monitored"), newWorld(t, c, "monitored-payload")
	kubernetes.start(nil)
	payload.start(func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = fixture.OCPImage })
	all := func() {
		kubernetes.mustPass()
		payload.mustPass()
	}
	all()
	kubernetes.serve()
	payload.serve()
	t.Run("When there is no Prometheus operator, clusters should still become available", func(t *testing.T) {
		all()
		NewWithT(t).Expect(kubernetes.missing(&corev1.Service{}, "capi-provider")).To(BeFalse(), "any Prometheus may use the Services")
	})
	gone := fixture.Serve(t, management.Monitoring)
	t.Run("When the Prometheus operator is installed, the managers should get a PodMonitor or ServiceMonitor", func(t *testing.T) {
		all()
		NewWithT(t).Expect(kubernetes.monitors()).To(Equal([]string{"ServiceMonitor capi-provider", "ServiceMonitor control-plane-operator"}))
		NewWithT(t).Expect(payload.monitors()).To(Equal([]string{"PodMonitor controlplane-operator", "ServiceMonitor capi-provider"}))
	})
	t.Run("When everything is monitored, it should write nothing", func(t *testing.T) {
		counted := fixture.NewFaulty(kubernetes.Reconciler.Client.(client.WithWatch))
		kubernetes.Reconciler.Client = counted
		kubernetes.mustPass()
		NewWithT(t).Expect(counted.Writes()).To(BeZero())
	})
	t.Run("When a user changes a monitor, it should be restored", func(t *testing.T) {
		monitor := &monitoringv1.ServiceMonitor{}
		kubernetes.get(monitor, "capi-provider")
		monitor.Spec.Endpoints[0].Port = "other"
		NewWithT(t).Expect(c.Update(t.Context(), monitor)).To(Succeed())
		kubernetes.mustPass()
		kubernetes.get(monitor, "capi-provider")
		NewWithT(t).Expect(monitor.Spec.Endpoints[0].Port).To(Equal("metrics"))
	})
	t.Run("When the user disables monitors, they should be deleted", func(t *testing.T) {
		kubernetes.change(func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.DisableMonitoringServices: "true"}
		})
		kubernetes.mustPass()
		NewWithT(t).Expect(kubernetes.monitors()).To(BeEmpty())
	})
	t.Run("When the Prometheus operator is removed, clusters should continue without it", func(t *testing.T) {
		gone()
		all()
	})
}

// TestPlatformMonitoring tests OpenShift's own Prometheus, which scrapes labelled namespaces and needs access to them.
func TestPlatformMonitoring(t *testing.T) {
	c := fixture.Start(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: rights.PrometheusRole}, Rules: rights.Prometheus()}
	fixture.Create(t, c, role)
	s := newWorld(t, c, "platform-monitored")
	s.start(nil)
	namespace, binding := &corev1.Namespace{}, &rbacv1.RoleBinding{}
	label := func() string {
		s.Expect(c.Get(t.Context(), client.ObjectKey{Name: s.hosted()}, namespace)).To(Succeed())
		return namespace.Labels[hyperv1.ClusterMonitoringLabel]
	}
	t.Run("When platform monitoring is disabled, it should not set the label, and keep an administrator's", func(t *testing.T) {
		s.mustPass()
		NewWithT(t).Expect(label()).To(BeEmpty())
		namespace.Labels[hyperv1.ClusterMonitoringLabel] = "true"
		NewWithT(t).Expect(c.Update(t.Context(), namespace)).To(Succeed())
		s.mustPass()
		NewWithT(t).Expect(label()).To(Equal("true"))
		NewWithT(t).Expect(s.missing(binding, "openshift-prometheus")).To(BeTrue())
	})
	t.Run("When platform monitoring is enabled, OpenShift's Prometheus should get access", func(t *testing.T) {
		s.Settings.PlatformMonitoring = true
		s.mustPass()
		NewWithT(t).Expect(label()).To(Equal("true"))
		s.get(binding, "openshift-prometheus")
		NewWithT(t).Expect(binding.Subjects).To(Equal([]rbacv1.Subject{rights.PlatformPrometheus()}))
		reader := fixture.As(t, "system:serviceaccount:openshift-monitoring:prometheus-k8s")
		NewWithT(t).Eventually(func() error {
			return reader.List(t.Context(), &corev1.PodList{}, client.InNamespace(s.hosted()))
		}, "1m", "100ms").Should(Succeed(), "the API server learns of rights a moment later")
		NewWithT(t).Expect(reader.List(t.Context(), &corev1.SecretList{}, client.InNamespace(s.hosted()))).NotTo(Succeed())
	})
	t.Run("When platform monitoring is disabled again, the label and the RoleBinding should be removed", func(t *testing.T) {
		s.Settings.PlatformMonitoring = false
		s.mustPass()
		NewWithT(t).Expect(label()).To(BeEmpty())
		NewWithT(t).Expect(s.missing(binding, "openshift-prometheus")).To(BeTrue())
	})
}
