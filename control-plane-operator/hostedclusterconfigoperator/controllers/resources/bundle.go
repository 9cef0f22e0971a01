package resources

import (
	"context"
	"embed"
	"io/fs"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/support/manifest"
	"github.com/openshift/hypershift/support/upsert"
)

//go:embed manifests/rbac
var rights embed.FS

// applyRights lets nodes join, and the API server and the metrics reach them.
func (r *Reconciler) applyRights(ctx context.Context, _ *scope) error {
	names, err := fs.Glob(rights, "manifests/rbac/*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		obj, err := manifest.Load(r.Guest.Scheme(), rights, name)
		if err != nil {
			return err
		}
		if err := r.apply(ctx, obj); err != nil {
			return err
		}
	}
	// With it the guest's own controllers approved each renewal, of nodes without a Machine too.
	renewal := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "system-bootstrap-node-renewal"}}
	_, err = upsert.Gone(ctx, r.Guest, renewal)
	return err
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
