// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/objects"
	"github.com/openshift/hypershift/support/management"
)

const (
	monitoringFlag = "monitoring"
	runbooks       = "https://github.com/openshift/hypershift/blob/main/docs"
)

// alerting holds the flags of alerts and dashboards.
type alerting struct {
	on                      bool
	labels, dashboardLabels map[string]string
	runbooks                string
}

func (a *alerting) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&a.on, monitoringFlag, false,
		"install monitors, recording rules, alerts and dashboards for a Prometheus operator and Grafana")
	flags.StringToStringVar(&a.labels, "monitoring-labels", nil,
		"labels of the monitors and rules, by which your Prometheus selects them, such as release=prometheus")
	flags.StringToStringVar(&a.dashboardLabels, "dashboard-labels", map[string]string{"grafana_dashboard": "1"},
		"labels of the dashboards' ConfigMaps, by which the sidecar of your Grafana finds them")
	flags.StringVar(&a.runbooks, "runbook-url", runbooks, "address of the folder docs/, to which alerts link")
}

func (a *alerting) complete(flags *pflag.FlagSet) error {
	for name, labels := range map[string]map[string]string{"monitoring-labels": a.labels, "dashboard-labels": a.dashboardLabels} {
		if flags.Changed(name) && !a.on {
			return fmt.Errorf("--%s has an effect only with --%s", name, monitoringFlag)
		}
		for key, value := range labels {
			if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
				return fmt.Errorf("--%s %s=%s: %s", name, key, value, strings.Join(problems, "; "))
			}
		}
	}
	if flags.Changed("runbook-url") && !a.on {
		return fmt.Errorf("--runbook-url has an effect only with --%s", monitoringFlag)
	}
	a.runbooks = strings.TrimSuffix(a.runbooks, "/")
	return nil
}

// checkMonitoring returns an error if alerts are requested of a cluster that does not serve their kinds.
func (i *install) checkMonitoring() error {
	if i.alerting.on && i.scope != scopeCRDs && !i.apis.Has(management.Monitoring) {
		return errors.New("installing alerts and dashboards: no Prometheus operator serves " + management.Monitoring +
			" in the management cluster; install one first, or omit --" + monitoringFlag)
	}
	return nil
}

// alerts returns the recording rules and alerts.
func (o *Options) alerts() *monitoringv1.PrometheusRule {
	rules := load[*monitoringv1.PrometheusRule]("alerts.yaml")
	rules.Namespace = o.namespace
	for _, group := range rules.Spec.Groups {
		for i := range group.Rules {
			annotations := group.Rules[i].Annotations
			for key, value := range annotations {
				value = strings.ReplaceAll(value, "RUNBOOKS", o.alerting.runbooks)
				annotations[key] = strings.ReplaceAll(value, "NAMESPACE", o.namespace)
			}
		}
	}
	return rules
}

// virtualIPMonitors returns what makes Prometheus find the pods that hold virtual IPs. A PodMonitor cannot name the
// token of Prometheus, so there is a Service.
func (o *Options) virtualIPMonitors() []client.Object {
	monitor := load[*monitoringv1.ServiceMonitor]("servicemonitor.yaml")
	monitor.Namespace, monitor.Name = o.virtualIPNamespace(), virtualIPName
	monitor.Spec.Selector.MatchLabels = map[string]string{operatorLabel: virtualIPName}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.virtualIPNamespace(), Name: virtualIPName, Labels: map[string]string{operatorLabel: virtualIPName},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": virtualIPName},
			Ports: []corev1.ServicePort{{
				Name: "metrics", Port: virtualIPMetricsPort, TargetPort: intstr.FromInt32(virtualIPMetricsPort), Protocol: corev1.ProtocolTCP,
			}},
		},
	}
	return []client.Object{service, monitor}
}

// alertingObjects returns the objects of --monitoring.
func (o *Options) alertingObjects() []client.Object {
	return append(append(o.dashboards(), o.alerts()), o.virtualIPMonitors()...)
}

// labeled adds the labels by which a Prometheus selects its objects.
func (o *Options) labeled(objs []client.Object) []client.Object {
	for _, obj := range objs {
		_, monitor := obj.(*monitoringv1.ServiceMonitor)
		_, rule := obj.(*monitoringv1.PrometheusRule)
		if len(o.alerting.labels) == 0 || !monitor && !rule {
			continue
		}
		labels := maps.Clone(o.alerting.labels)
		maps.Copy(labels, obj.GetLabels())
		obj.SetLabels(labels)
	}
	return objs
}

// dropAlerting removes the objects of --monitoring that an earlier installation applied, if they are not requested any
// more. It keeps objects of the same names that others applied.
func (i *install) dropAlerting(ctx context.Context, c client.Client) error {
	for _, obj := range i.alertingObjects() {
		if i.alerting.on && (obj.GetNamespace() == i.namespace || len(i.virtualIP.addresses) > 0) {
			continue
		}
		gvk, err := c.GroupVersionKindFor(obj)
		if err != nil {
			return fmt.Errorf("find the kind of %s: %w", obj.GetName(), err)
		}
		existing := &metav1.PartialObjectMetadata{}
		existing.SetGroupVersionKind(gvk)
		err = c.Get(ctx, client.ObjectKeyFromObject(obj), existing)
		if meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil && !Owns(existing) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", objects.Describe(obj), err)
		}
		if err := c.Delete(ctx, existing); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s: %w", objects.Describe(obj), err)
		}
	}
	return nil
}
