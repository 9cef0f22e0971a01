// SPDX-License-Identifier: Apache-2.0

// Package finalizer puts finalizers on objects and takes them off.
//
// A patch carries the whole list of finalizers, so one that is made from an outdated object would drop what another writer
// has added since, or bring back what it has removed. Each write here holds only for the version of the object that it was
// made from; on an outdated one it ends in a conflict.
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

// Add puts a finalizer on obj, which must have been read before. also makes other changes of metadata and spec that must be
// there before anything is made for the object; nil for none. Nothing is written when nothing changes.
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

// Remove takes finalizers off obj, which must have been read before; an object that is gone has none. Nothing is written
// when it carries none of them.
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
