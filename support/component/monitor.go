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

// TelemetryMetrics is the set of metrics with which monitors keep only the metrics in their manifests. With any other
// set, they keep all metrics.
const TelemetryMetrics = "Telemetry"

const (
	// clusterLabel is the label of metrics with the ID of the hosted cluster, as OpenShift's telemetry expects it.
	clusterLabel = "_id"
	// namespaceWord is the placeholder of the hosted namespace in the expressions of recording rules.
	namespaceWord = "NAMESPACE"
)

// fitMonitor adapts a monitor or recording rule to this control plane. It selects only the hosted namespace, and adds
// the cluster's ID to the metrics. It does not change other objects.
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

// optional reports whether an object has a kind that the management cluster may lack.
func optional(scheme *runtime.Scheme, obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	return err == nil && gvk.Group == management.Monitoring
}

// uncached converts an object of an optional kind to an unstructured one, which clients read and write without a cache.
// A cache would watch the kind, and never stop if the kind is removed.
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

// applyOptional applies an object of an optional kind if the management cluster serves the kind. If the user has
// disabled monitoring, it deletes the object.
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

// absent reports whether an error means that the kind does not exist: it was never there, was removed after the client
// discovered it, or is being removed.
func absent(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}
