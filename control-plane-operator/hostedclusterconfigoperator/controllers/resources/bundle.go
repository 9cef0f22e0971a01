package resources

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/manifest"
	"github.com/openshift/hypershift/support/upsert"
)

//go:embed manifests
var manifests embed.FS

// adapters change single manifests of a folder, by file name.
type adapters map[string]func(client.Object) error

// adapt makes an adapter of a function over the manifest's own type.
func adapt[T client.Object](change func(T) error) func(client.Object) error {
	return func(obj client.Object) error {
		typed, ok := obj.(T)
		if !ok {
			return fmt.Errorf("the manifest is a %T, not a %T", obj, typed)
		}
		return change(typed)
	}
}

// load reads a folder of manifests in the order of their names.
func (r *Reconciler) load(folder string) ([]string, []client.Object, error) {
	files, err := fs.Sub(manifests, "manifests/"+folder)
	if err != nil {
		return nil, nil, err
	}
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, nil, err
	}
	var objects []client.Object
	for _, name := range names {
		obj, err := manifest.Load(r.Guest.Scheme(), files, name)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, obj)
	}
	return names, objects, nil
}

func (r *Reconciler) applyFolder(ctx context.Context, folder string, changes adapters) error {
	names, objects, err := r.load(folder)
	if err != nil {
		return err
	}
	for i, obj := range objects {
		if change, ok := changes[names[i]]; ok {
			if err := change(obj); err != nil {
				return fmt.Errorf("adapting %s/%s: %w", folder, names[i], err)
			}
		}
		if err := r.apply(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) removeFolder(ctx context.Context, folder string) error {
	_, objects, err := r.load(folder)
	if err != nil {
		return err
	}
	var failures []error
	for _, obj := range objects {
		_, err := upsert.Gone(ctx, r.Guest, obj)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func (r *Reconciler) applyRights(ctx context.Context, _ *scope) error {
	return r.applyFolder(ctx, "rbac", nil)
}
