// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/rights"
	"github.com/openshift/hypershift/support/upsert"
)

// platformMonitoringBinding lets OpenShift's Prometheus discover scrape targets in a hosted namespace.
const platformMonitoringBinding = "openshift-prometheus"

// servedAfter is how long an API server may take to serve a kind after its CRD was created.
const servedAfter = 10 * time.Second

// reconcilePlatformMonitoring lets OpenShift's own Prometheus into the hosted namespace if the installer requested it,
// and otherwise revokes that. The administrator of any other Prometheus grants its rights.
func (r *Reconciler) reconcilePlatformMonitoring(ctx context.Context, s *scope) (ctrl.Result, error) {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: platformMonitoringBinding}}
	if !r.Settings.PlatformMonitoring {
		return ctrl.Result{}, r.endPlatformMonitoring(ctx, s, binding)
	}
	_, err := upsert.Object(ctx, r.Client, binding, func() error {
		s.own(binding)
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: rights.PrometheusRole}
		binding.Subjects = []rbacv1.Subject{rights.PlatformPrometheus()}
		return nil
	})
	return ctrl.Result{}, err
}

// endPlatformMonitoring revokes what an operator with other settings granted. It removes the label before the binding:
// the binding shows that this operator set the label, and not an administrator.
func (r *Reconciler) endPlatformMonitoring(ctx context.Context, s *scope, binding *rbacv1.RoleBinding) error {
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(binding), binding)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	_, err = upsert.Object(ctx, r.Client, namespace, func() error {
		delete(namespace.Labels, hyperv1.ClusterMonitoringLabel)
		return nil
	})
	if err != nil {
		return err
	}
	return r.drop(ctx, s, binding)
}

// whenMonitored reconciles all clusters when a Prometheus operator is installed. It delays the reconcile, because the
// API server serves a kind some time after its CRD was created.
func (r *Reconciler) whenMonitored() handler.EventHandler {
	all := func(ctx context.Context, crd client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		clusters := &hyperv1.HostedClusterList{}
		if !strings.HasSuffix(crd.GetName(), "."+management.Monitoring) || r.Client.List(ctx, clusters) != nil {
			return
		}
		for i := range clusters.Items {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])}, servedAfter)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			all(ctx, e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			all(ctx, e.ObjectNew, queue)
		},
	}
}
