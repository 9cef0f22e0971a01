// SPDX-License-Identifier: Apache-2.0

// Package finalizer adds and removes finalizers of objects.
//
// A patch has the complete list of finalizers. A patch that is computed from an outdated object would remove finalizers
// that another writer has added since, or restore finalizers that it has removed. Each write here therefore applies
// only to the version of the object that it was computed from. If the object is outdated, the write fails with a
// conflict.
package finalizer

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Add adds a finalizer to obj, which must be an object read from the API. also makes other changes of metadata and spec
// that must be stored before the controller creates anything for the object; nil for none. Add writes nothing if
// nothing changes.
func Add(ctx context.Context, c client.Client, obj client.Object, name string, also func() error) error {
	before := obj.DeepCopyObject().(client.Object)
	controllerutil.AddFinalizer(obj, name)
	if also != nil {
		if err := also(); err != nil {
			return err
		}
	}
	return patch(ctx, c, before, obj, "adding", name)
}

// Remove removes finalizers of obj, which must be an object read from the API. A deleted object is not an error.
// Remove writes nothing if obj has none of the finalizers.
func Remove(ctx context.Context, c client.Client, obj client.Object, names ...string) error {
	before := obj.DeepCopyObject().(client.Object)
	for _, name := range names {
		controllerutil.RemoveFinalizer(obj, name)
	}
	return client.IgnoreNotFound(patch(ctx, c, before, obj, "removing", names...))
}

func patch(ctx context.Context, c client.Client, before, obj client.Object, doing string, names ...string) error {
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	locked := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, obj, locked); err != nil {
		return fmt.Errorf("%s the finalizer %s of %s %s: %w", doing, strings.Join(names, ", "), reflect.TypeOf(obj).Elem().Name(), client.ObjectKeyFromObject(before), err)
	}
	return nil
}
