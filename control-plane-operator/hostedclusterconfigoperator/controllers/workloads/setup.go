// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/watch"
)

// SetupWithManager watches the HostedControlPlane and its components in the management cluster. In the guest it watches
// the objects of the components with their status, and nodes that are created, deleted, tainted or become Ready.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, management cache.Cache, hcp client.ObjectKey) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("workloads").
		WithOptions(watch.Soon()).
		WatchesRawSource(watch.ControlPlane(management)).
		WatchesRawSource(source.Kind[client.Object](management, &hyperv1.ControlPlaneComponent{}, watch.One(hcp))).
		Watches(&corev1.Node{}, watch.One(hcp), builder.WithPredicates(usability()))
	for _, kept := range []client.Object{
		&appsv1.DaemonSet{}, &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{},
		&policyv1.PodDisruptionBudget{},
	} {
		b = b.Watches(kept, watch.One(hcp))
	}
	return b.Complete(r)
}

// usability drops updates of a Node that change neither its readiness nor its taints. Each node sends several of them a
// minute.
func usability() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return ready(e.ObjectOld) != ready(e.ObjectNew) || !equality.Semantic.DeepEqual(taints(e.ObjectOld), taints(e.ObjectNew))
	}}
}

func taints(obj client.Object) []corev1.Taint {
	if node, _ := obj.(*corev1.Node); node != nil {
		return node.Spec.Taints
	}
	return nil
}

func ready(obj client.Object) corev1.ConditionStatus {
	node, _ := obj.(*corev1.Node)
	if node == nil {
		return ""
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}
