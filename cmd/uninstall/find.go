// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/install"
)

// The kinds that install writes, in the order in which they are removed: first what intercepts requests, then what
// runs, then its rights and its configuration.
var (
	interceptors = []schema.GroupVersionKind{
		admissionv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
		admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
		admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
		admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"),
	}
	namespaced = []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
		monitoringv1.SchemeGroupVersion.WithKind("ServiceMonitor"),
		monitoringv1.SchemeGroupVersion.WithKind("PrometheusRule"),
		rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("Role"),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	}
	rights = []schema.GroupVersionKind{
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	}
	// others are the kinds that a namespace is searched for before it is removed, besides those above.
	others = []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		batchv1.SchemeGroupVersion.WithKind("Job"),
		batchv1.SchemeGroupVersion.WithKind("CronJob"),
		corev1.SchemeGroupVersion.WithKind("Pod"),
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	}
	// guarded kinds are not removed if they were changed after the command has read them.
	guarded = []string{"CustomResourceDefinition", "Namespace"}
)

// find lists the objects of the installation.
func (u *uninstall) find(ctx context.Context) (*installation, error) {
	found := &installation{}
	if err := u.addOwned(ctx, found, "", interceptors); err != nil {
		return nil, err
	}
	namespaces := []string{u.namespace, install.VirtualIPNamespace(u.namespace), metav1.NamespacePublic}
	for _, namespace := range namespaces {
		if err := u.addOwned(ctx, found, namespace, namespaced); err != nil {
			return nil, err
		}
	}
	if err := u.addOwned(ctx, found, "", rights); err != nil {
		return nil, err
	}
	if u.crds {
		if err := u.addCRDs(ctx, found); err != nil {
			return nil, err
		}
	}
	for _, namespace := range namespaces[:2] {
		if err := u.addNamespace(ctx, found, namespace); err != nil {
			return nil, err
		}
	}
	return found, u.addPriorityClasses(ctx, found)
}

// addOwned adds the objects of some kinds that install has applied.
func (u *uninstall) addOwned(
	ctx context.Context, found *installation, namespace string, kinds []schema.GroupVersionKind,
) error {
	for _, gvk := range kinds {
		objects, err := u.metadata(ctx, gvk, namespace)
		if err != nil {
			return err
		}
		for i := range objects {
			if install.Owns(&objects[i]) && objects[i].DeletionTimestamp.IsZero() {
				found.remove = append(found.remove, &objects[i])
			}
		}
	}
	return nil
}

// metadata lists objects without their content, which may be secret; none if the kind is not served.
func (u *uninstall) metadata(
	ctx context.Context, gvk schema.GroupVersionKind, namespace string,
) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := u.client.List(ctx, list, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for objects of kind %s that install has written: %w", gvk.Kind, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(gvk)
	}
	return list.Items, nil
}

// addCRDs adds the CRDs that install has applied. It returns an error if one has objects.
func (u *uninstall) addCRDs(ctx context.Context, found *installation) error {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := u.client.List(ctx, list); err != nil {
		return fmt.Errorf("list the CRDs: %w", err)
	}
	var used []string
	for i := range list.Items {
		crd := &list.Items[i]
		if !install.Owns(crd) || !crd.DeletionTimestamp.IsZero() {
			continue
		}
		for _, version := range crd.Spec.Versions {
			if !version.Storage {
				continue
			}
			gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
			names, err := u.list(ctx, gvk, 1)
			if err != nil {
				return err
			}
			for _, name := range names {
				used = append(used, gvk.Kind+" "+name)
			}
		}
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		found.remove = append(found.remove, crd)
	}
	if len(used) > 0 {
		return fmt.Errorf("the CRDs are in use, and their removal would delete all objects of their kinds, such as %s; "+
			"delete these objects first, or leave out --crds", strings.Join(used, ", "))
	}
	return nil
}

// addNamespace adds a namespace that install has created, unless it has objects of others.
func (u *uninstall) addNamespace(ctx context.Context, found *installation, name string) error {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	switch err := u.client.Get(ctx, client.ObjectKey{Name: name}, namespace); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read Namespace %s: %w", name, err)
	case !install.Owns(namespace), !namespace.DeletionTimestamp.IsZero():
		return nil
	}
	var foreign []string
	if manager := otherManager(namespace); manager != "" {
		foreign = append(foreign, "it was created by "+manager)
	}
	for _, gvk := range slices.Concat(namespaced, others) {
		objects, err := u.metadata(ctx, gvk, name)
		if err != nil {
			return err
		}
		for i := range objects {
			if ofOthers(&objects[i]) {
				foreign = append(foreign, "it has "+describe(&objects[i]))
			}
		}
	}
	if len(foreign) > 0 {
		found.kept = append(found.kept, fmt.Sprintf("Namespace %s stays: %s; delete it yourself if nothing needs it",
			name, strings.Join(foreign, ", ")))
		return nil
	}
	found.remove = append(found.remove, namespace)
	return nil
}

// ourPrefix begins the field managers of all our programs.
const ourPrefix = install.FieldOwner

// otherManager returns a field manager of an object, other than our programs and Kubernetes' own; empty if there is
// none.
func otherManager(obj client.Object) string {
	for _, entry := range obj.GetManagedFields() {
		ours := strings.HasPrefix(entry.Manager, ourPrefix) || strings.HasPrefix(entry.Manager, "kube-controller") ||
			strings.HasPrefix(entry.Manager, "cluster-policy-controller")
		if entry.Subresource == "" && !ours {
			return entry.Manager
		}
	}
	return ""
}

// written are objects that Kubernetes and OpenShift create in each namespace.
var written = []string{
	"ConfigMap kube-root-ca.crt", "ConfigMap openshift-service-ca.crt", "ServiceAccount default",
	"ServiceAccount builder", "ServiceAccount deployer",
}

// ofOthers reports whether an object in our namespace is of another product or user.
func ofOthers(obj *metav1.PartialObjectMetadata) bool {
	if install.Owns(obj) || len(obj.OwnerReferences) > 0 || slices.Contains(written, obj.Kind+" "+obj.Name) {
		return false
	}
	for _, entry := range obj.ManagedFields {
		if strings.HasPrefix(entry.Manager, ourPrefix) {
			return false
		}
	}
	// OpenShift creates RoleBindings, and Secrets of ServiceAccounts.
	return !strings.HasPrefix(obj.Name, "system:") && obj.Annotations[corev1.ServiceAccountNameKey] == "" &&
		obj.Annotations["openshift.io/internal-registry-auth-token.service-account"] == ""
}

// addPriorityClasses adds the PriorityClasses that install has created.
func (u *uninstall) addPriorityClasses(ctx context.Context, found *installation) error {
	list := &schedulingv1.PriorityClassList{}
	if err := u.client.List(ctx, list); err != nil {
		return fmt.Errorf("list the PriorityClasses: %w", err)
	}
	for i := range list.Items {
		if class := &list.Items[i]; install.OwnsPriorityClass(class) {
			class.SetGroupVersionKind(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"))
			found.remove = append(found.remove, class)
		}
	}
	return nil
}
