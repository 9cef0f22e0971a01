// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sharedWatch is one set of watches for the providers of many namespaces: what fifty times five watches cost a small machine is not what a
// benchmark of MAAS is to measure. Each provider still has its own memory of MAAS, and hears of its namespace only.
type sharedWatch struct{ cache.Cache }

// newSharedWatch watches until the context ends.
func newSharedWatch(ctx context.Context, cfg *rest.Config) (sharedWatch, error) {
	all, err := cache.New(cfg, cache.Options{Scheme: newScheme()})
	if err != nil {
		return sharedWatch{}, err
	}
	go func() { _ = all.Start(ctx) }()
	return sharedWatch{all}, nil
}

// of makes a manager see one namespace of it.
func (w sharedWatch) of(namespace string) cache.NewCacheFunc {
	return func(*rest.Config, cache.Options) (cache.Cache, error) { return namespaced{w.Cache, namespace}, nil }
}

// namespaced is a view of one namespace.
type namespaced struct {
	cache.Cache
	namespace string
}

// Start waits for the end: whoever made the watches started them.
func (n namespaced) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// GetInformer tells of objects in the namespace.
func (n namespaced) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	all, err := n.Cache.GetInformer(ctx, obj, opts...)
	return narrowed{all, n.namespace}, err
}

type narrowed struct {
	cache.Informer
	namespace string
}

// AddEventHandlerWithOptions leaves out what is in other namespaces.
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
