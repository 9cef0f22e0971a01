// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/pace"
)

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("nodepool").
		For(&hyperv1.NodePool{}).
		WithOptions(pace.Options()).
		Watches(&hyperv1.HostedCluster{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfCluster)).
		Watches(&hyperv1.NodePool{}, handler.EnqueueRequestsFromMapFunc(r.siblings),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfConfig)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfSecret))
	for _, child := range []client.Object{
		&clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}, &clusterv1.Machine{}, &clusterv1.MachineHealthCheck{},
	} {
		b = b.Watches(child, handler.EnqueueRequestsFromMapFunc(r.poolByAnnotation))
	}
	for _, kind := range r.Platforms.Watched() {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(r.poolByAnnotation))
	}
	if err := b.Complete(pace.ByNamespace(r)); err != nil {
		return fmt.Errorf("setting up the NodePool controller: %w", err)
	}
	return nil
}

// poolByAnnotation maps an object to the pool that created it. Cluster API copies the annotation from a set to its
// machines. In other namespaces than the pool's, the annotation counts only in the hosted control plane namespace of a
// cluster of the pool's namespace.
func (r *Reconciler) poolByAnnotation(ctx context.Context, obj client.Object) []reconcile.Request {
	namespace, name, ok := strings.Cut(obj.GetAnnotations()[hyperv1.NodePoolAnnotation], "/")
	if !ok {
		return nil
	}
	if namespace != obj.GetNamespace() {
		if of, _, hosted := r.clusterOf(ctx, obj.GetNamespace()); !hosted || of != namespace {
			return nil
		}
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}

func (r *Reconciler) poolsOfCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.pools(ctx, obj.GetNamespace(), func(pool *hyperv1.NodePool) bool { return pool.Spec.ClusterName == obj.GetName() })
}

// poolsOfConfig maps a ConfigMap to the pools that refer to it, or to the pools of the control plane that it belongs
// to.
func (r *Reconciler) poolsOfConfig(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.pools(ctx, obj.GetNamespace(), func(pool *hyperv1.NodePool) bool { return names(pool, obj.GetName()) })
	labels := obj.GetLabels()
	if labels[coreConfigLabel] != "true" && labels[tunedGeneratedLabel] != "true" && labels[performanceStatusLabel] != "true" {
		return requests
	}
	return append(requests, r.poolsOfHosted(ctx, obj.GetNamespace())...)
}

// poolsOfSecret maps a Secret to the pool that created it. It maps the ignition-server's CA, which the user-data
// contains, to all pools of its cluster.
func (r *Reconciler) poolsOfSecret(ctx context.Context, obj client.Object) []reconcile.Request {
	if obj.GetName() == naming.IgnitionServerCA {
		return r.poolsOfHosted(ctx, obj.GetNamespace())
	}
	return r.poolByAnnotation(ctx, obj)
}

// poolsOfHosted returns the pools of the cluster to which a hosted control plane namespace belongs.
func (r *Reconciler) poolsOfHosted(ctx context.Context, hosted string) []reconcile.Request {
	clusterNamespace, cluster, ok := r.clusterOf(ctx, hosted)
	if !ok {
		return nil
	}
	return r.pools(ctx, clusterNamespace, func(pool *hyperv1.NodePool) bool { return pool.Spec.ClusterName == cluster })
}

// clusterOf returns the HostedCluster to which a hosted control plane namespace belongs. Only administrators and the
// operator annotate namespaces.
func (r *Reconciler) clusterOf(ctx context.Context, hosted string) (namespace, name string, ok bool) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: hosted}, obj); err != nil {
		return "", "", false
	}
	return strings.Cut(obj.Annotations[hyperv1.HostedClusterAnnotation], "/")
}

func names(pool *hyperv1.NodePool, configMap string) bool {
	for _, ref := range slices.Concat(pool.Spec.Config, pool.Spec.TuningConfig) {
		if ref.Name == configMap {
			return true
		}
	}
	return false
}

func (r *Reconciler) pools(ctx context.Context, namespace string, want func(*hyperv1.NodePool) bool) []reconcile.Request {
	pools := &hyperv1.NodePoolList{}
	if err := r.Client.List(ctx, pools, client.InNamespace(namespace)); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range pools.Items {
		if want(&pools.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])})
		}
	}
	return requests
}
