// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"embed"
	"io/fs"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/manifest"
	"github.com/openshift/hypershift/support/upsert"
)

//go:embed manifests
var manifests embed.FS

// applyRights grants the permissions that nodes need to join, and those with which the API server and the metrics
// collectors reach nodes.
func (r *Reconciler) applyRights(ctx context.Context, _ *scope) error {
	if err := r.applyAll(ctx, "manifests/rbac/*.yaml"); err != nil {
		return err
	}
	// With this binding, the guest's own controllers would approve each renewal, even for nodes without a Machine.
	renewal := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "system-bootstrap-node-renewal"}}
	_, err := upsert.Gone(ctx, r.Guest, renewal)
	return err
}

// applyJoining lets the ignition-server create bootstrap tokens, and nothing else. With this permission in place, new
// machines may no longer use the shared credentials. It is therefore only granted once the ignition-server exists.
func (r *Reconciler) applyJoining(ctx context.Context, s *scope) error {
	if _, disabled := s.hcp.Annotations[hyperv1.DisableIgnitionServerAnnotation]; disabled {
		return nil
	}
	return r.applyAll(ctx, "manifests/joining/*.yaml")
}

// applyAll applies the objects of some manifests to the guest.
func (r *Reconciler) applyAll(ctx context.Context, pattern string) error {
	names, err := fs.Glob(manifests, pattern)
	if err != nil {
		return err
	}
	for _, name := range names {
		obj, err := manifest.Load(r.Guest.Scheme(), manifests, name)
		if err != nil {
			return err
		}
		if err := r.apply(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// applyNamespaces creates the namespaces that clients of config.openshift.io expect.
func (r *Reconciler) applyNamespaces(ctx context.Context, _ *scope) error {
	for _, name := range []string{"openshift-config", "openshift-config-managed"} {
		if err := r.apply(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	return nil
}
