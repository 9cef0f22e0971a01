// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/rights"
	"github.com/openshift/hypershift/support/upsert"
)

// platformMonitoringBinding lets OpenShift's Prometheus discover scrape targets in a hosted namespace.
const platformMonitoringBinding = "openshift-prometheus"

// Monitoring lets OpenShift's own Prometheus into the hosted namespace if the installer requested it, and otherwise
// revokes that. The administrator of any other Prometheus grants its rights.
type Monitoring struct {
	Client  client.Client
	Enabled bool
}

// Reconcile writes or deletes the RoleBinding.
func (r Monitoring) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: platformMonitoringBinding}}
	if !r.Enabled {
		return ctrl.Result{}, r.end(ctx, s, binding)
	}
	_, err := upsert.Object(ctx, r.Client, binding, func() error {
		s.Own(binding)
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: rights.PrometheusRole}
		binding.Subjects = []rbacv1.Subject{rights.PlatformPrometheus()}
		return nil
	})
	return ctrl.Result{}, err
}

// end revokes what an operator with other settings granted. It removes the label before the binding:
// the binding shows that this operator set the label, and not an administrator.
func (r Monitoring) end(ctx context.Context, s *cluster.Scope, binding *rbacv1.RoleBinding) error {
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(binding), binding)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	_, err = upsert.Object(ctx, r.Client, namespace, func() error {
		delete(namespace.Labels, hyperv1.ClusterMonitoringLabel)
		return nil
	})
	if err != nil {
		return err
	}
	return s.Drop(ctx, r.Client, binding)
}
