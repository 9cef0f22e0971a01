// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift/hypershift/cmd/kube"
)

func TestMonitoringFlag(t *testing.T) {
	t.Run("sets the labels on monitors, rules and dashboards", func(t *testing.T) {
		g := NewWithT(t)
		o := installation(t, "--monitoring", "--monitoring-labels", "release=prom", "--dashboard-labels", "board=yes", "--api-virtual-ip", "192.0.2.9")
		for _, obj := range []client.Object{
			the[*monitoringv1.ServiceMonitor](t, o, operatorName), the[*monitoringv1.PrometheusRule](t, o, "metrics"),
			the[*monitoringv1.PrometheusRule](t, o, "hypershift-maas"), the[*monitoringv1.ServiceMonitor](t, o, virtualIPName),
		} {
			g.Expect(obj.GetLabels()).To(HaveKeyWithValue("release", "prom"), obj.GetName())
		}
		g.Expect(the[*corev1.ConfigMap](t, o, "dashboard-fleet").Labels).To(Equal(map[string]string{"board": "yes"}))
	})
	t.Run("refuses labels without the flag", func(t *testing.T) {
		_, err := completed(t, "--monitoring-labels", "release=prom")
		NewWithT(t).Expect(err).To(MatchError("--monitoring-labels has an effect only with --monitoring"))
	})
	t.Run("refuses a cluster without a Prometheus operator", func(t *testing.T) {
		g := NewWithT(t)
		i := &install{Options: *installation(t, "--monitoring")}
		g.Expect(i.checkMonitoring()).To(MatchError(ContainSubstring("install one first, or omit --monitoring")))
		i = &install{Options: *installation(t, "--monitoring", "--management-apis", "monitoring.coreos.com")}
		g.Expect(i.checkMonitoring()).To(Succeed())
	})
}

func TestInstallWithoutMonitoring(t *testing.T) {
	rule := func(manager string) *monitoringv1.PrometheusRule {
		return &monitoringv1.PrometheusRule{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: "hypershift-maas",
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply,
				APIVersion: "monitoring.coreos.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}}}}
	}
	for _, tt := range []struct {
		name, manager string
		args          []string
		left          bool
	}{
		{"removes alerts of an earlier installation", FieldOwner, nil, false},
		{"keeps alerts of a user", "kubectl", nil, true},
		{"keeps alerts that are requested", FieldOwner, []string{"--monitoring"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			i := &install{Options: *installation(t, tt.args...)}
			c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithReturnManagedFields().WithObjects(rule(tt.manager)).Build()
			g.Expect(i.dropAlerting(t.Context(), c)).To(Succeed())
			g.Expect(exists(t, c, rule(""))).To(Equal(tt.left))
		})
	}
}
