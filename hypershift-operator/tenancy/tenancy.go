// SPDX-License-Identifier: Apache-2.0

// Package tenancy tells what in the management cluster belongs to a hosted cluster. The names of a cluster, its pools and the
// Secrets that it points to are chosen by a tenant, so a name proves nothing: ours is what we made, and it says so.
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

// Owner is the HostedCluster that an object says it was made for, as namespace/name; empty when it says nothing. A UID would
// tell more, but a cluster that is restored from a backup has another one.
func Owner(obj client.Object) string {
	return obj.GetAnnotations()[hyperv1.HostedClusterAnnotation]
}

// Namespace says why a cluster may not have a namespace for its control plane: it is there, and neither made for this cluster
// nor given to it by an administrator, who alone can annotate a namespace. Empty when the cluster may.
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

// Refusal is Namespace for a namespace that was read.
func Refusal(namespace *corev1.Namespace, cluster client.ObjectKey) string {
	switch owner := Owner(namespace); owner {
	case cluster.String():
		return ""
	case "":
		return fmt.Sprintf("namespace %s, which the control plane would live in, was there before and is not this cluster's: rename the cluster, "+
			"or have an administrator give it the namespace by the annotation %s=%s", namespace.Name, hyperv1.HostedClusterAnnotation, cluster)
	default:
		return fmt.Sprintf("namespace %s belongs to HostedCluster %s already: rename one of the two clusters", namespace.Name, owner)
	}
}

// Claim marks an object as made for a cluster, and refuses one that exists and was not.
func Claim(obj client.Object, cluster client.ObjectKey) error {
	owner := Owner(obj)
	switch {
	case owner == cluster.String():
		return nil
	case owner != "":
		return fmt.Errorf("it is HostedCluster %s's, whose name and this one's make the same name: rename one of the two", owner)
	case obj.GetResourceVersion() != "":
		return fmt.Errorf("an object of that name is there and was not made from what HostedCluster %s names: give yours another name", cluster)
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[hyperv1.HostedClusterAnnotation] = cluster.String()
	obj.SetAnnotations(annotations)
	return nil
}

// Gone deletes what was made for a cluster, and leaves what only has the name.
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
