// SPDX-License-Identifier: Apache-2.0

// Package readthrough gives a manager a client that caches the content of only those objects that were read.
//
// For a kind that is common in a management cluster, such as Secrets, a normal cache would hold all objects. This
// client watches the metadata of all objects. It keeps the content of an object from its first read for as long as
// the metadata is unchanged. So the client sends no read while nothing changes, and a change is visible as soon as
// with a cache. Controllers must watch such kinds by metadata (builder.OnlyMetadata); otherwise a second cache with
// all content starts.
package readthrough

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// lastApplied is the annotation in which kubectl stores a copy of the applied object, including the data of Secrets.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// NewClient wraps next, the constructor of a manager's client, for a cache that holds only the metadata of some kinds.
func NewClient(next client.NewClientFunc, kinds ...client.Object) client.NewClientFunc {
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		r, err := newReader(config, options, kinds...)
		if err != nil {
			return nil, err
		}
		cached := *options.Cache
		cached.Reader, options.Cache = r, &cached
		return next(config, options)
	}
}

func newReader(config *rest.Config, options client.Options, kinds ...client.Object) (*reader, error) {
	live, err := client.New(config, client.Options{HTTPClient: options.HTTPClient, Scheme: options.Scheme, Mapper: options.Mapper})
	if err != nil {
		return nil, fmt.Errorf("making the client that reads past the cache: %w", err)
	}
	known, ok := options.Cache.Reader.(cache.Cache)
	if !ok {
		return nil, fmt.Errorf("the manager reads from %T, which is not a cache", options.Cache.Reader)
	}
	r := &reader{cache: known, live: live, scheme: live.Scheme(), kinds: map[schema.GroupVersionKind]bool{}, kept: map[types.UID]client.Object{}}
	for _, kind := range kinds {
		gvk, err := apiutil.GVKForObject(kind, r.scheme)
		if err != nil {
			return nil, fmt.Errorf("naming the kind of %T: %w", kind, err)
		}
		r.kinds[gvk] = false
	}
	return r, nil
}

// Lean is a transform for caches that drops large, unused metadata: the managed fields, and kubectl's copy of the
// applied object.
func Lean(in any) (any, error) {
	if obj, ok := in.(*metav1.PartialObjectMetadata); ok {
		obj.ManagedFields = nil
		delete(obj.Annotations, lastApplied)
	}
	return in, nil
}

// reader implements client.Reader.
type reader struct {
	cache  cache.Cache
	live   client.Reader
	scheme *runtime.Scheme

	mu sync.Mutex
	// kinds are the kinds for which the cache holds only metadata. The value is true once the handler that drops
	// deleted objects is registered.
	kinds map[schema.GroupVersionKind]bool
	kept  map[types.UID]client.Object
}

// Get implements client.Reader.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	gvk, lean, err := r.lean(ctx, obj)
	if err != nil {
		return err
	}
	if !lean {
		return r.cache.Get(ctx, key, obj, opts...)
	}
	known := &metav1.PartialObjectMetadata{}
	known.SetGroupVersionKind(gvk)
	if err := r.cache.Get(ctx, key, known); err != nil {
		return err
	}
	return r.read(ctx, known, obj)
}

// List implements client.Reader.
func (r *reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, lean, err := r.lean(ctx, list)
	if err != nil {
		return err
	}
	if !lean {
		return r.cache.List(ctx, list, opts...)
	}
	known := &metav1.PartialObjectMetadataList{}
	known.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := r.cache.List(ctx, known, opts...); err != nil {
		return err
	}
	items := make([]runtime.Object, 0, len(known.Items))
	for i := range known.Items {
		item, err := r.scheme.New(gvk)
		if err != nil {
			return fmt.Errorf("making a %s: %w", gvk.Kind, err)
		}
		if err := r.read(ctx, &known.Items[i], item.(client.Object)); client.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil {
			items = append(items, item)
		}
	}
	return meta.SetList(list, items)
}

// lean returns the kind of an object or list, and reports whether the cache holds only metadata of that kind.
func (r *reader) lean(ctx context.Context, obj runtime.Object) (schema.GroupVersionKind, bool, error) {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return schema.GroupVersionKind{}, false, nil
	}
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return gvk, false, err
	}
	if _, isList := obj.(client.ObjectList); isList {
		gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	}
	r.mu.Lock()
	watched, lean := r.kinds[gvk]
	r.mu.Unlock()
	if !lean || watched {
		return gvk, lean, nil
	}
	return gvk, true, r.forgetDeleted(ctx, gvk)
}

// read returns the content of an object whose metadata is in the cache.
func (r *reader) read(ctx context.Context, known *metav1.PartialObjectMetadata, obj client.Object) error {
	r.mu.Lock()
	kept := r.kept[known.UID]
	r.mu.Unlock()
	if kept != nil && kept.GetResourceVersion() == known.ResourceVersion {
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(kept.DeepCopyObject()).Elem())
		return nil
	}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(known), obj); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if obj.GetUID() == known.UID {
		r.kept[known.UID] = obj.DeepCopyObject().(client.Object)
	}
	return nil
}

// forgetDeleted registers a handler that drops the content of deleted objects of a kind.
func (r *reader) forgetDeleted(ctx context.Context, gvk schema.GroupVersionKind) error {
	known := &metav1.PartialObjectMetadata{}
	known.SetGroupVersionKind(gvk)
	informer, err := r.cache.GetInformer(ctx, known)
	if err != nil {
		return fmt.Errorf("watching the metadata of %s: %w", gvk.Kind, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kinds[gvk] {
		return nil
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(deleted any) {
		if unknown, ok := deleted.(toolscache.DeletedFinalStateUnknown); ok {
			deleted = unknown.Obj
		}
		if obj, ok := deleted.(client.Object); ok {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.kept, obj.GetUID())
		}
	}})
	if err != nil {
		return fmt.Errorf("watching for deleted objects of kind %s: %w", gvk.Kind, err)
	}
	r.kinds[gvk] = true
	return nil
}
