// SPDX-License-Identifier: Apache-2.0

package resources

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/watch"
	"github.com/openshift/hypershift/support/component"
)

// SetupWithManager watches the HostedControlPlane in the management cluster and the objects that this operator manages
// in the guest. hcp names the HostedControlPlane.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, management cache.Cache, hcp client.ObjectKey) error {
	managed := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()[component.GuestLabel] != "" })
	b := ctrl.NewControllerManagedBy(mgr).Named("resources").
		WithOptions(watch.Soon()).
		WatchesRawSource(watch.ControlPlane(management))
	for _, kept := range []client.Object{
		&corev1.Service{}, &corev1.ConfigMap{}, &discoveryv1.EndpointSlice{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}, &corev1.Namespace{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{}, &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{},
	} {
		b = b.WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), kept, watch.One(hcp), spec(managed)))
	}
	return b.Complete(r)
}

// spec drops updates that only change a status, which this operator does not read. Kinds without a generation have no
// status either.
func spec(p predicate.Predicate) predicate.Predicate {
	return predicate.And(p, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectNew.GetGeneration() == 0 || e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration()
	}})
}
