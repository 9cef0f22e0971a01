// SPDX-License-Identifier: Apache-2.0

// Package upsert brings one object of a Kubernetes API to the state that a caller desires. It makes no API write if the
// object already has that state.
//
// Apply is for an object that the caller renders completely, such as a workload with its rights and configuration.
// Object, Patch and Status are for an object whose desired state depends on its current state: a key that is created
// once, or fields of other owners.
package upsert

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Result states what an upsert wrote.
type Result string

// The possible results of an upsert.
const (
	Unchanged Result = "unchanged"
	Created   Result = "created"
	Updated   Result = "updated"
)

// Object reads obj by its name, calls mutate to change it, and creates or updates it. Fields that mutate does not
// change keep the values of the API server or of other writers. So mutate must set only the fields that it owns. It
// must not change the name or namespace. Object does not write a status subresource.
//
// It returns an error that names the object. apierrors.IsConflict still recognizes an update conflict.
func Object(ctx context.Context, c client.Client, obj client.Object, mutate func() error) (Result, error) {
	what := describe(c, obj)
	key := client.ObjectKeyFromObject(obj)
	err := c.Get(ctx, key, obj)
	if client.IgnoreNotFound(err) != nil {
		return Unchanged, fmt.Errorf("reading %s: %w", what, err)
	}
	existed := err == nil
	before := obj.DeepCopyObject()
	if err := mutate(); err != nil {
		return Unchanged, fmt.Errorf("building %s: %w", what, err)
	}
	if client.ObjectKeyFromObject(obj) != key {
		return Unchanged, fmt.Errorf("building %s: its name changed to %s", what, client.ObjectKeyFromObject(obj))
	}
	if !existed {
		return create(ctx, c, obj, what)
	}
	if equality.Semantic.DeepEqual(before, obj) {
		return Unchanged, nil
	}
	if err := c.Update(ctx, obj); err != nil {
		return Unchanged, fmt.Errorf("updating %s: %w", what, err)
	}
	return updated(before.(client.Object), obj), nil
}

// updated returns Updated, or Unchanged if the server's defaulting made the object equal again.
func updated(before, after client.Object) Result {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return Unchanged
	}
	return Updated
}

func create(ctx context.Context, c client.Client, obj client.Object, what string) (Result, error) {
	if err := c.Create(ctx, obj); err != nil {
		return Unchanged, fmt.Errorf("creating %s: %w", what, err)
	}
	return Created, nil
}

// Status writes the changes that mutate makes to obj's status subresource; obj must have been read before.
func Status(ctx context.Context, c client.Client, obj client.Object, mutate func()) error {
	return status(ctx, c, obj, mutate, client.MergeFrom)
}

// StatusLatest is Status for changes that are valid only for obj as it was read. It returns a conflict if obj was
// written since.
func StatusLatest(ctx context.Context, c client.Client, obj client.Object, mutate func()) error {
	return status(ctx, c, obj, mutate, latest)
}

func status(ctx context.Context, c client.Client, obj client.Object, mutate func(), from func(before client.Object) client.Patch) error {
	difference := change(obj, mutate, from)
	if difference == nil {
		return nil
	}
	if err := c.Status().Patch(ctx, obj, difference); err != nil {
		return fmt.Errorf("writing the status of %s: %w", describe(c, obj), err)
	}
	return nil
}

// Patch writes the changes that mutate makes to obj's metadata and spec; obj must have been read before.
func Patch(ctx context.Context, c client.Client, obj client.Object, mutate func()) error {
	return patch(ctx, c, obj, mutate, client.MergeFrom)
}

// PatchLatest is Patch for changes that are valid only for obj as it was read. It returns a conflict if obj was written
// since.
func PatchLatest(ctx context.Context, c client.Client, obj client.Object, mutate func()) error {
	return patch(ctx, c, obj, mutate, latest)
}

func patch(ctx context.Context, c client.Client, obj client.Object, mutate func(), from func(before client.Object) client.Patch) error {
	difference := change(obj, mutate, from)
	if difference == nil {
		return nil
	}
	if err := c.Patch(ctx, obj, difference); err != nil {
		return fmt.Errorf("patching %s: %w", describe(c, obj), err)
	}
	return nil
}

// change calls mutate on obj, and returns the resulting patch; nil if nothing changes.
func change(obj client.Object, mutate func(), from func(before client.Object) client.Patch) client.Patch {
	before := obj.DeepCopyObject().(client.Object)
	mutate()
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	return from(before)
}

func latest(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// Gone deletes obj if it exists, and reports whether it is gone. False means that it is still being deleted.
func Gone(ctx context.Context, c client.Client, obj client.Object, opts ...client.DeleteOption) (bool, error) {
	what := describe(c, obj)
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", what, err)
	}
	if obj.GetDeletionTimestamp() != nil {
		return false, nil
	}
	if err := c.Delete(ctx, obj, opts...); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting %s: %w", what, err)
	}
	return false, nil
}

// describe returns the kind and namespace/name of obj for messages.
func describe(c client.Client, obj client.Object) string {
	kind := fmt.Sprintf("%T", obj)
	if gvk, err := apiutil.GVKForObject(obj, c.Scheme()); err == nil {
		kind = gvk.Kind
	}
	if obj.GetNamespace() == "" {
		return fmt.Sprintf("%s %s", kind, obj.GetName())
	}
	return fmt.Sprintf("%s %s/%s", kind, obj.GetNamespace(), obj.GetName())
}
