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

// applyRights lets nodes join, and the API server and the metrics reach them.
func (r *Reconciler) applyRights(ctx context.Context, _ *scope) error {
	if err := r.applyAll(ctx, "manifests/rbac/*.yaml"); err != nil {
		return err
	}
	// With it the guest's own controllers approved each renewal, of nodes without a Machine too.
	renewal := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "system-bootstrap-node-renewal"}}
	_, err := upsert.Gone(ctx, r.Guest, renewal)
	return err
}

// applyJoining lets the ignition-server make bootstrap tokens, and nothing else. From then on what all machines had in common is not taken of
// new ones, so it waits for an ignition-server that there is.
func (r *Reconciler) applyJoining(ctx context.Context, s *scope) error {
	if _, disabled := s.hcp.Annotations[hyperv1.DisableIgnitionServerAnnotation]; disabled {
		return nil
	}
	return r.applyAll(ctx, "manifests/joining/*.yaml")
}

// applyAll brings the objects of some manifests into the guest.
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

// applyNamespaces makes the namespaces that clients of config.openshift.io expect.
func (r *Reconciler) applyNamespaces(ctx context.Context, _ *scope) error {
	for _, name := range []string{"openshift-config", "openshift-config-managed"} {
		if err := r.apply(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	return nil
}
