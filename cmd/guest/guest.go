// SPDX-License-Identifier: Apache-2.0

// Package guest finds the kubeconfig of a hosted cluster for the commands. A tenant can write everything beside the
// HostedCluster, so an administrator's command takes it from the hosted namespace.
package guest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/kubeconfig"
)

// ErrNone reports that a hosted cluster has no kubeconfig. Errors that wrap it give the reason.
var ErrNone = errors.New("it has no kubeconfig")

var errNotReady = fmt.Errorf("%w yet: its API server is not up; wait for condition Available", ErrNone)

// Find reads the admin kubeconfig of a hosted cluster from its hosted namespace. It returns an error that wraps ErrNone
// if there is none. It returns an error that apierrors.IsForbidden recognizes if the user has no permissions in that
// namespace.
func Find(ctx context.Context, c client.Reader, cluster client.ObjectKey) (*kubeconfig.Access, error) {
	if err := CheckNamespace(ctx, c, cluster); err != nil {
		return nil, err
	}
	hcp := &hyperv1.HostedControlPlane{}
	key := client.ObjectKey{Namespace: kube.HostedNamespace(cluster.Namespace, cluster.Name), Name: cluster.Name}
	switch err := c.Get(ctx, key, hcp); {
	case apierrors.IsNotFound(err):
		return nil, errNotReady
	case err != nil:
		return nil, fmt.Errorf("read HostedControlPlane %s: %w", key, err)
	case hcp.Status.KubeConfig == nil:
		return nil, errNotReady
	}
	secret := &corev1.Secret{}
	key.Name = hcp.Status.KubeConfig.Name
	if err := c.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	if !ownedBy(secret, hcp) {
		return nil, fmt.Errorf("refuse Secret %s: HostedControlPlane %s/%s does not own it", key, hcp.Namespace, hcp.Name)
	}
	return parse(key, secret.Data[hcp.Status.KubeConfig.Key])
}

// FindAsTenant reads the copy of the admin kubeconfig beside the HostedCluster. The tenant can change it: use it only
// for the tenant.
func FindAsTenant(ctx context.Context, c client.Reader, hc *hyperv1.HostedCluster) (*kubeconfig.Access, error) {
	if hc.Status.KubeConfig == nil {
		return nil, errNotReady
	}
	key := client.ObjectKey{Namespace: hc.Namespace, Name: hc.Status.KubeConfig.Name}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	return parse(key, secret.Data[hosted.KubeconfigKey])
}

func ownedBy(obj, owner client.Object) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner.GetUID()
	})
}

func parse(key client.ObjectKey, raw []byte) (*kubeconfig.Access, error) {
	access, err := kubeconfig.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig in Secret %s is refused: %w", key, err)
	}
	return access, nil
}

// CheckNamespace rejects a hosted namespace that belongs to another cluster: two pairs of namespace and name can
// produce the same name. The error wraps ErrNone. A namespace that does not exist is not an error.
func CheckNamespace(ctx context.Context, c client.Reader, cluster client.ObjectKey) error {
	name := kube.HostedNamespace(cluster.Namespace, cluster.Name)
	namespace := &corev1.Namespace{}
	switch err := c.Get(ctx, client.ObjectKey{Name: name}, namespace); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read Namespace %s: %w", name, err)
	}
	if owner := namespace.Annotations[hyperv1.HostedClusterAnnotation]; owner != cluster.String() {
		return fmt.Errorf("%w: Namespace %s is not the hosted namespace of HostedCluster %s, its annotation %s is %q",
			ErrNone, name, cluster, hyperv1.HostedClusterAnnotation, owner)
	}
	return nil
}
