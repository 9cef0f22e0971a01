// SPDX-License-Identifier: Apache-2.0

// Package upsert brings one object of a Kubernetes API to the shape that a caller wants, and makes no API write when it
// has that shape already.
//
// Apply is for an object that the caller renders whole, such as a workload with its rights and configuration. Object,
// Patch and Status are for one whose shape follows from what is there: a key that is made once, fields that others own.
package upsert

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Result tells what an upsert wrote.
type Result string

// The possible results of an upsert.
const (
	Unchanged Result = "unchanged"
	Created   Result = "created"
	Updated   Result = "updated"
)

// Object reads obj by its name, lets mutate shape it, and creates or updates it. Fields that mutate leaves alone keep
// what the API server or other writers put there, so mutate must set what it owns and touch nothing else. mutate must
// not change the name or namespace. A status subresource is not written.
//
// It returns an error that names the object; an update conflict stays recognisable by apierrors.IsConflict.
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

// updated tells apart a write that changed something from one that the server's defaulting made equal again.
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

// Status writes the difference that mutate makes to obj's status subresource; obj must have been read before.
func Status(ctx context.Context, c client.Client, obj client.Object, mutate func()) error {
	return status(ctx, c, obj, mutate, client.MergeFrom)
}

// StatusLatest is Status for findings that hold only for obj as it was read: a conflict when somebody wrote it since.
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

// Patch writes the difference that mutate makes to obj's metadata and spec; obj must have been read before.
func Patch(ctx context.Context, c client.Client, obj client.Object, mutate func()) error {
	return patch(ctx, c, obj, mutate, client.MergeFrom)
}

// PatchLatest is Patch for a decision that holds only for obj as it was read: a conflict when somebody wrote it since.
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

// change lets mutate shape obj, and returns the patch that it makes; nil when it changes nothing.
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

// Gone deletes obj if it is there, and tells whether it is gone: false means that it is still being deleted.
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

// describe names obj for a person: kind and namespace/name.
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
