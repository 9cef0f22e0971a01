// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"

	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const monitorText = `
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  endpoints: [{port: metrics, metricRelabelings: [{action: keep, sourceLabels: [__name__], regex: few}]}]
`

const monitoredText = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: etcd}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`

// monitored returns a component with a monitor.
func monitored(set string) (*Component, *Scope) {
	scope := newScope()
	scheme := newScheme()
	utilruntime.Must(monitoringv1.AddToScheme(scheme))
	scope.HCP.Spec.ClusterID, scope.MetricsSet = "an-id", set
	scope.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(scope.HCP).
		WithStatusSubresource(&hyperv1.ControlPlaneComponent{}, &appsv1.Deployment{}).Build()
	return &Component{Name: "etcd", Manifests: manifests(map[string]string{
		"servicemonitor.yaml": monitorText,
		"deployment.yaml":     monitoredText,
	})}, scope
}

func TestMonitor(t *testing.T) {
	get := func(g Gomega, scope *Scope) *monitoringv1.ServiceMonitor {
		monitor := &monitoringv1.ServiceMonitor{}
		g.Expect(scope.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, monitor)).To(Succeed())
		return monitor
	}
	t.Run("When only telemetry is kept, a ServiceMonitor should keep its manifest's metrics and add the cluster ID", func(t *testing.T) {
		g := NewWithT(t)
		c, scope := monitored(TelemetryMetrics)
		g.Expect(c.Reconcile(t.Context(), scope)).To(Succeed())
		endpoint := get(g, scope).Spec.Endpoints[0]
		g.Expect(endpoint.MetricRelabelConfigs).To(HaveLen(1))
		g.Expect(endpoint.RelabelConfigs).To(ConsistOf(HaveField("Replacement", HaveValue(Equal("an-id")))))
	})
	t.Run("When all metrics are kept, a ServiceMonitor should drop none", func(t *testing.T) {
		g := NewWithT(t)
		c, scope := monitored("All")
		g.Expect(c.Reconcile(t.Context(), scope)).To(Succeed())
		g.Expect(get(g, scope).Spec.Endpoints[0].MetricRelabelConfigs).To(BeEmpty())
	})
	t.Run("When the component is disabled, it should delete its ServiceMonitor", func(t *testing.T) {
		g := NewWithT(t)
		c, scope := monitored("All")
		g.Expect(c.Reconcile(t.Context(), scope)).To(Succeed())
		g.Expect(c.remove(t.Context(), scope)).To(Succeed())
		g.Expect(scope.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &monitoringv1.ServiceMonitor{})).NotTo(Succeed())
	})
}
