// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/pace"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/reference"
)

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("hostedcluster").
		For(&hyperv1.HostedCluster{}).
		WithOptions(pace.Options())
	for _, child := range []client.Object{
		&corev1.Namespace{}, &appsv1.Deployment{}, &corev1.ServiceAccount{}, &corev1.Service{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
		&networkingv1.NetworkPolicy{}, &corev1.PersistentVolumeClaim{},
	} {
		b = b.WatchesMetadata(child, handler.EnqueueRequestsFromMapFunc(r.owner))
	}
	for _, child := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		b = b.WatchesMetadata(child, handler.EnqueueRequestsFromMapFunc(cluster.RequestByLabels))
	}
	for _, shared := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}} {
		b = b.WatchesMetadata(shared, handler.EnqueueRequestsFromMapFunc(r.ownerOrReader))
	}
	b = b.WatchesMetadata(&apiextensionsv1.CustomResourceDefinition{}, r.whenMonitored())
	b = b.Watches(&hyperv1.NodePool{}, handler.EnqueueRequestsFromMapFunc(clusterOfPool))
	for _, kind := range append([]client.Object{&hyperv1.HostedControlPlane{}, &clusterv1.Cluster{}}, r.Platforms.Watched()...) {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(r.owner))
	}
	b = b.WatchesRawSource(r.limitTurns())
	if err := b.Complete(pace.ByNamespace(r)); err != nil {
		return fmt.Errorf("setting up the HostedCluster controller: %w", err)
	}
	return nil
}

// owner maps an object to the HostedCluster for which it was created. The object's own annotation is trusted only where
// no other tenant can write it. These are the namespace of that cluster, the operator's namespace, kube-system, and a
// namespace that the cluster names. In a hosted namespace, the annotation of the namespace counts.
func (r *Reconciler) owner(ctx context.Context, obj client.Object) []reconcile.Request {
	request, points := cluster.RequestByAnnotation(obj)
	namespace := obj.GetNamespace()
	if points && slices.Contains([]string{"", request.Namespace, r.Settings.OperatorNamespace, metav1.NamespaceSystem},
		namespace) {
		return []reconcile.Request{request}
	}
	if namespace == "" {
		return nil
	}
	hosted := &metav1.PartialObjectMetadata{}
	hosted.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: namespace}, hosted); err != nil {
		return nil
	}
	if of, ok := cluster.RequestByAnnotation(hosted); ok && hosted.Labels[hyperv1.ControlPlaneNamespaceLabel] == "true" {
		return []reconcile.Request{of}
	}
	if points && r.namesAgents(ctx, request, namespace) {
		return []reconcile.Request{request}
	}
	return nil
}

// namesAgents reports whether a HostedCluster takes its agents from a namespace.
func (r *Reconciler) namesAgents(ctx context.Context, request reconcile.Request, namespace string) bool {
	hc := &hyperv1.HostedCluster{}
	if err := r.Client.Get(ctx, request.NamespacedName, hc); err != nil {
		return false
	}
	return hc.Spec.Platform.Agent != nil && hc.Spec.Platform.Agent.AgentNamespace == namespace
}

// ownerOrReader maps a Secret or ConfigMap to the cluster for which it was created, or to the clusters that read it.
func (r *Reconciler) ownerOrReader(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.owner(ctx, obj)
	clusters := &hyperv1.HostedClusterList{}
	if err := r.Client.List(ctx, clusters, client.InNamespace(obj.GetNamespace())); err != nil {
		return requests
	}
	for i := range clusters.Items {
		hc := &clusters.Items[i]
		if slices.Contains(r.readBy(hc), obj.GetName()) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(hc)})
		}
	}
	return requests
}

// readBy returns the names of all Secrets and ConfigMaps beside a HostedCluster that it reads.
func (r *Reconciler) readBy(hc *hyperv1.HostedCluster) []string {
	names := []string{hc.Spec.PullSecret.Name, hc.Spec.SSHKey.Name}
	for _, ref := range []*corev1.LocalObjectReference{hc.Spec.AdditionalTrustBundle, hc.Spec.ServiceAccountSigningKey} {
		names = append(names, reference.Name(ref))
	}
	for _, ref := range hosted.References(&hc.Spec) {
		names = append(names, *ref.Name)
	}
	if plugin, known := r.Platforms.For(hc.Spec.Platform.Type); known {
		names = append(names, plugin.CredentialsSecret(hc))
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

func clusterOfPool(_ context.Context, obj client.Object) []reconcile.Request {
	pool, ok := obj.(*hyperv1.NodePool)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: pool.Namespace, Name: pool.Spec.ClusterName}}}
}
