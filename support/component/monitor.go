// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/management"
)

// TelemetryMetrics is the set of metrics in which monitors keep what their manifests say. With any other, all are kept.
const TelemetryMetrics = "Telemetry"

const (
	// clusterLabel of a metric is the ID of the hosted cluster, as the telemetry of OpenShift wants it.
	clusterLabel = "_id"
	// namespaceWord stands for the hosted namespace in the expressions of recording rules.
	namespaceWord = "NAMESPACE"
)

// fitMonitor makes a monitor or recording rule one of this control plane: it looks at no other namespace, and what it finds has the
// cluster's ID. Other objects are left as they are.
func (c *Component) fitMonitor(scope *Scope, obj client.Object) {
	switch o := obj.(type) {
	case *monitoringv1.ServiceMonitor:
		o.Spec.NamespaceSelector.MatchNames = []string{scope.HCP.Namespace}
		for i := range o.Spec.Endpoints {
			fitEndpoint(scope, &o.Spec.Endpoints[i].RelabelConfigs, &o.Spec.Endpoints[i].MetricRelabelConfigs)
		}
	case *monitoringv1.PodMonitor:
		o.Spec.NamespaceSelector.MatchNames = []string{scope.HCP.Namespace}
		for i := range o.Spec.PodMetricsEndpoints {
			fitEndpoint(scope, &o.Spec.PodMetricsEndpoints[i].RelabelConfigs, &o.Spec.PodMetricsEndpoints[i].MetricRelabelConfigs)
		}
	case *monitoringv1.PrometheusRule:
		for _, group := range o.Spec.Groups {
			for i := range group.Rules {
				group.Rules[i].Expr = intstr.FromString(strings.ReplaceAll(group.Rules[i].Expr.StrVal, namespaceWord, scope.HCP.Namespace))
			}
		}
	default:
		return
	}
	for key, value := range map[string]string{componentLabel: c.Name, hostedControlPlaneLabel: scope.HCP.Namespace} {
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
		obj.SetLabels(labels)
	}
}

func fitEndpoint(scope *Scope, target, metrics *[]monitoringv1.RelabelConfig) {
	*target = append(*target, monitoringv1.RelabelConfig{TargetLabel: clusterLabel, Replacement: ptr.To(scope.HCP.Spec.ClusterID), Action: "replace"})
	if scope.MetricsSet != TelemetryMetrics {
		*metrics = nil
	}
}

// optional tells whether an object is of a kind that the management cluster may lack.
func optional(scheme *runtime.Scheme, obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	return err == nil && gvk.Group == management.Monitoring
}

// uncached is an object of an optional kind as clients read and write it past their caches, which would watch the kind, and for ever if
// it went.
func uncached(scheme *runtime.Scheme, obj client.Object) (client.Object, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("rendering %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// applyOptional applies an object of an optional kind where the management cluster has it, and the user does not decline: then what is
// there goes.
func (c *Component) applyOptional(ctx context.Context, scope *Scope, obj client.Object, result *outcome) error {
	c.fitMonitor(scope, obj)
	u, err := uncached(scope.Client.Scheme(), obj)
	if err != nil {
		return err
	}
	if metav1.HasAnnotation(scope.HCP.ObjectMeta, hyperv1.DisableMonitoringServices) {
		return c.delete(ctx, scope, u)
	}
	if err := c.apply(ctx, scope, u, result); !absent(err) {
		return err
	}
	return nil
}

// absent tells of an error that the kind is not there: never was, went after a client had learnt of it, or is going.
func absent(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}
