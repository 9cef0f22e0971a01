// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"embed"
	"fmt"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/objects"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/manifest"
	"github.com/openshift/hypershift/support/rights"
)

// Values of --platform-monitoring.
const (
	monitorNothing  = "None"
	monitorOperator = "OperatorOnly"
	monitorAll      = "All"
)

// prometheusBinding lets OpenShift's Prometheus discover scrape targets in the operator's namespace.
const prometheusBinding = rights.PrometheusRole

//go:embed manifests
var manifests embed.FS

// ownNamespace returns the operator's namespace. It has the label of OpenShift's Prometheus if that is to scrape the
// operator; other Prometheus servers find the ServiceMonitor.
func (o *Options) ownNamespace() *corev1.Namespace {
	labels := map[string]string{componentLabel: operatorName}
	if o.platformMonitors() {
		labels[hyperv1.ClusterMonitoringLabel] = "true"
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace, Labels: labels}}
}

func (o *Options) platformMonitors() bool {
	return o.monitoring == monitorOperator || o.monitoring == monitorAll
}

// monitors returns the objects that make a Prometheus operator scrape and record the operator's metrics.
func (o *Options) monitors() []client.Object {
	var objs []client.Object
	if o.platformMonitors() {
		objs = append(objs, o.prometheusBinding())
	}
	if o.apis.Has(management.Monitoring) || o.alerting.on {
		objs = append(objs, o.serviceMonitor(), o.recordingRules())
	}
	if o.alerting.on {
		objs = append(objs, o.alerts())
		objs = append(objs, o.dashboards()...)
	}
	return o.labeled(objs)
}

func (o *Options) prometheusBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: prometheusBinding},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: rights.PrometheusRole},
		Subjects:   []rbacv1.Subject{rights.PlatformPrometheus()},
	}
}

func (o *Options) serviceMonitor() *monitoringv1.ServiceMonitor {
	monitor := load[*monitoringv1.ServiceMonitor]("servicemonitor.yaml")
	monitor.Namespace = o.namespace
	return monitor
}

func (o *Options) recordingRules() *monitoringv1.PrometheusRule {
	rules := load[*monitoringv1.PrometheusRule]("prometheusrule.yaml")
	rules.Namespace = o.namespace
	for _, group := range rules.Spec.Groups {
		for i := range group.Rules {
			group.Rules[i].Expr = intstr.FromString(strings.ReplaceAll(group.Rules[i].Expr.StrVal, "NAMESPACE", o.namespace))
		}
	}
	return rules
}

func load[T client.Object](file string) T {
	obj, err := manifest.LoadAs[T](kube.Scheme, manifests, "manifests/"+file)
	if err != nil {
		// An embedded file cannot be read: a defect of the build that the first run shows.
		panic(err)
	}
	return obj
}

// dropMonitors removes the monitoring objects of an earlier installation if they are not requested any more.
func (i *install) dropMonitors(ctx context.Context, c client.Client) error {
	if i.platformMonitors() {
		return nil
	}
	left := i.prometheusBinding()
	if err := c.Delete(ctx, left); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", objects.Describe(left), err)
	}
	return nil
}
