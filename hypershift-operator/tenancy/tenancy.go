// SPDX-License-Identifier: Apache-2.0

// Package tenancy determines which objects of the management cluster belong to a hosted cluster. A tenant chooses the
// names of a cluster, its pools and its Secrets, so a name proves nothing. An object belongs to a cluster if its
// annotation says so.
package tenancy

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

// Owner returns the HostedCluster for which an object was created, as namespace/name; empty if it has no annotation. A
// UID would be more precise, but it changes when a cluster is restored from a backup.
func Owner(obj client.Object) string {
	return obj.GetAnnotations()[hyperv1.HostedClusterAnnotation]
}

// Namespace returns the reason why a cluster must not use a namespace for its control plane; empty if it may. It must
// not if the namespace exists, was not created for this cluster, and was not assigned to it by an administrator. Only
// an administrator can annotate a namespace.
func Namespace(ctx context.Context, c client.Reader, name string, cluster client.ObjectKey) (why string, err error) {
	namespace := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return "", nil
		}
		return "", fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return Refusal(namespace, cluster), nil
}

// Refusal is like Namespace, for a namespace that was already read.
func Refusal(namespace *corev1.Namespace, cluster client.ObjectKey) string {
	switch owner := Owner(namespace); owner {
	case cluster.String():
		return ""
	case "":
		return fmt.Sprintf("namespace %s for the control plane existed before and does not belong to this cluster; rename the "+
			"cluster, or have an administrator give it the namespace by the annotation %s=%s", namespace.Name, hyperv1.HostedClusterAnnotation, cluster)
	default:
		return fmt.Sprintf("namespace %s belongs to HostedCluster %s already: rename one of the two clusters", namespace.Name, owner)
	}
}

// Claim marks an object as created for a cluster. It fails if the object exists and was not created for it.
func Claim(obj client.Object, cluster client.ObjectKey) error {
	owner := Owner(obj)
	switch {
	case owner == cluster.String():
		return nil
	case owner != "":
		return fmt.Errorf("it belongs to HostedCluster %s, whose name leads to the same object name; rename one of the clusters", owner)
	case obj.GetResourceVersion() != "":
		return fmt.Errorf("an object of that name already exists and was not created for HostedCluster %s; "+
			"rename the object that the HostedCluster refers to", cluster)
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[hyperv1.HostedClusterAnnotation] = cluster.String()
	obj.SetAnnotations(annotations)
	return nil
}

// Gone deletes objects that were created for a cluster, and keeps others with the same names.
func Gone(ctx context.Context, c client.Client, cluster client.ObjectKey, objects ...client.Object) error {
	var failures []error
	for _, obj := range objects {
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil && Owner(obj) == cluster.String() {
			_, err = upsert.Gone(ctx, c, obj)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}
