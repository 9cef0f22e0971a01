// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/testenv"
)

const podMonitorText = `
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: web, labels: {own: label}}
spec:
  selector: {matchLabels: {app: web}}
  podMetricsEndpoints:
  - {port: metrics, metricRelabelings: [{action: keep, sourceLabels: [__name__], regex: few}]}
  - {port: other}
`

const rulesText = `
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: web}
spec:
  groups:
  - name: a
    rules:
    - {record: up, expr: 'sum(up{namespace="NAMESPACE"}) / count(up{namespace="NAMESPACE"})'}
    - {record: down, expr: 'vector(0)'}
`

// watched returns a component with all kinds of monitors.
func watched(set string) (*Component, *Scope) {
	c, s := monitored(set)
	c.Manifests = manifests(map[string]string{
		"servicemonitor.yaml": monitorText, "podmonitor.yaml": podMonitorText, "rules.yaml": rulesText, "deployment.yaml": monitoredText,
	})
	return c, s
}

func monitors() []client.Object {
	return []client.Object{&monitoringv1.ServiceMonitor{}, &monitoringv1.PodMonitor{}, &monitoringv1.PrometheusRule{}}
}

func TestMonitorsOfACluster(t *testing.T) {
	t.Run("When a cluster is monitored, its monitors should select only its namespace and be labelled with it", func(t *testing.T) {
		g := NewWithT(t)
		c, s := watched(TelemetryMetrics)
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		pods := get(t, s, "web", &monitoringv1.PodMonitor{})
		g.Expect(pods.Spec.NamespaceSelector.MatchNames).To(Equal([]string{namespace}))
		g.Expect(get(t, s, "web", &monitoringv1.ServiceMonitor{}).Spec.NamespaceSelector.MatchNames).To(Equal([]string{namespace}))
		g.Expect(pods.Spec.PodMetricsEndpoints).To(HaveLen(2))
		for _, endpoint := range pods.Spec.PodMetricsEndpoints {
			g.Expect(endpoint.RelabelConfigs).To(ConsistOf(And(
				HaveField("TargetLabel", "_id"), HaveField("Replacement", HaveValue(Equal("an-id"))), HaveField("Action", "replace"))))
		}
		g.Expect(pods.Spec.PodMetricsEndpoints[0].MetricRelabelConfigs).To(HaveLen(1))
		rules := get(t, s, "web", &monitoringv1.PrometheusRule{}).Spec.Groups[0].Rules
		g.Expect(rules[0].Expr.StrVal).To(Equal(`sum(up{namespace="clusters-demo"}) / count(up{namespace="clusters-demo"})`))
		g.Expect(rules[1].Expr.StrVal).To(Equal("vector(0)"))
		for _, obj := range monitors() {
			labels := get(t, s, "web", obj).GetLabels()
			g.Expect(labels).To(HaveKeyWithValue(hyperv1.ControlPlaneComponentLabel, "etcd"))
			g.Expect(labels).To(HaveKeyWithValue(hyperv1.ControlPlaneNamespaceLabel, namespace))
		}
		g.Expect(pods.Labels).To(HaveKeyWithValue("own", "label"))
	})
	t.Run("When all metrics are kept, a PodMonitor should drop none", func(t *testing.T) {
		g := NewWithT(t)
		c, s := watched("All")
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(get(t, s, "web", &monitoringv1.PodMonitor{}).Spec.PodMetricsEndpoints[0].MetricRelabelConfigs).To(BeEmpty())
	})
	t.Run("When the user disables monitoring, it should delete its own monitors and nothing else", func(t *testing.T) {
		g := NewWithT(t)
		c, s := watched("All")
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		s.HCP.Annotations = map[string]string{hyperv1.DisableMonitoringServices: ""}
		for range 2 {
			g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		}
		for _, obj := range monitors() {
			g.Expect(gone(t, s, "web", obj)).To(BeTrue(), "%T", obj)
		}
		g.Expect(get(t, s, "etcd", &hyperv1.ControlPlaneComponent{}).Status.Resources).To(HaveLen(1), "the workload")
	})
	t.Run("When another component has a monitor of that name, it should not delete it", func(t *testing.T) {
		g := NewWithT(t)
		c, s := watched("All")
		foreign := &monitoringv1.PodMonitor{}
		foreign.Namespace, foreign.Name, foreign.Labels = namespace, "web", map[string]string{hyperv1.ControlPlaneComponentLabel: "another"}
		g.Expect(s.Client.Create(t.Context(), foreign)).To(Succeed())
		s.HCP.Annotations = map[string]string{hyperv1.DisableMonitoringServices: "true"}
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(gone(t, s, "web", foreign)).To(BeFalse())
	})
}

// TestClustersWithoutMonitors checks management clusters without the kinds of the Prometheus operator.
func TestClustersWithoutMonitors(t *testing.T) {
	noKind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}}
	without := func(s *Scope, why error) {
		s.Client = testenv.Intercept(s.Client.(client.WithWatch), func(r testenv.Request) error {
			if kind := r.Of.GetObjectKind().GroupVersionKind().Kind; strings.Contains(kind, "Monitor") || kind == "PrometheusRule" {
				return why
			}
			return r.Do()
		})
	}
	t.Run("When the management cluster lacks the monitor kinds, it should still roll out and remove components", func(t *testing.T) {
		g := NewWithT(t)
		c, s := watched("All")
		without(s, noKind)
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(get(t, s, "etcd", &hyperv1.ControlPlaneComponent{}).Status.Resources).To(HaveLen(1), "what was not applied is not told of")
		s.HCP.Annotations = map[string]string{hyperv1.DisableMonitoringServices: ""}
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(c.remove(t.Context(), s)).To(Succeed())
		g.Expect(gone(t, s, "etcd", &hyperv1.ControlPlaneComponent{})).To(BeTrue())
	})
	t.Run("When the API server rejects a monitor, it should return the error", func(t *testing.T) {
		g := NewWithT(t)
		c, s := watched("All")
		without(s, errAway)
		g.Expect(c.Reconcile(t.Context(), s)).To(MatchError(errAway))
		g.Expect(c.remove(t.Context(), s)).To(MatchError(errAway))
	})
}
