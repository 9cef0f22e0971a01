// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sharedWatch is one set of watches for the providers of many namespaces. Fifty times five watches are expensive on a
// small machine, and a benchmark of MAAS must not measure them. Each provider still has its own inventory, and sees its
// namespace only.
type sharedWatch struct{ cache.Cache }

// newSharedWatch runs the watches until the context ends.
func newSharedWatch(ctx context.Context, cfg *rest.Config) (sharedWatch, error) {
	all, err := cache.New(cfg, cache.Options{Scheme: newScheme()})
	if err != nil {
		return sharedWatch{}, err
	}
	go func() { _ = all.Start(ctx) }()
	return sharedWatch{all}, nil
}

// of returns a cache for one namespace.
func (w sharedWatch) of(namespace string) cache.NewCacheFunc {
	return func(*rest.Config, cache.Options) (cache.Cache, error) { return namespaced{w.Cache, namespace}, nil }
}

// namespaced is a view of one namespace.
type namespaced struct {
	cache.Cache
	namespace string
}

// Start waits for the end; the watches were started by their creator.
func (n namespaced) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// GetInformer returns an informer for the objects in the namespace.
func (n namespaced) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	all, err := n.Cache.GetInformer(ctx, obj, opts...)
	return narrowed{all, n.namespace}, err
}

type narrowed struct {
	cache.Informer
	namespace string
}

// AddEventHandlerWithOptions omits objects in other namespaces.
func (n narrowed) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, o toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return n.Informer.AddEventHandlerWithOptions(toolscache.FilteringResourceEventHandler{Handler: handler, FilterFunc: func(obj any) bool {
		if last, gone := obj.(toolscache.DeletedFinalStateUnknown); gone {
			obj = last.Obj
		}
		object, ok := obj.(client.Object)
		return ok && object.GetNamespace() == n.namespace
	}}, o)
}
