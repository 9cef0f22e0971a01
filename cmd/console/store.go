// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// retryInterval is the pause before a collection is listed again after its watch ended.
	retryInterval = time.Second
	// deniedInterval is the pause after the API server refused a request.
	deniedInterval = 30 * time.Second
)

// store holds the objects of some kinds as the API server's watches report them. It reads with the rights of the user:
// a kind that the user may not list returns the API server's error. Its objects must not be changed.
type store struct {
	client  client.WithWatch
	changed func()

	mu          sync.Mutex
	collections map[place]*collection
}

// place is a kind of list in a namespace; an empty namespace means all.
type place struct{ kind, namespace string }

// collection has the objects of a place. It has neither objects nor an error until the API server has answered.
type collection struct {
	objects map[client.ObjectKey]client.Object
	err     error
}

func newStore(c client.WithWatch, changed func()) *store {
	return &store{client: c, changed: changed, collections: map[place]*collection{}}
}

// follow watches the kind of a list in a namespace until the context ends. Repeated calls have no effect.
func (s *store) follow(ctx context.Context, list client.ObjectList, namespace string) {
	kind, err := s.kind(list)
	if err != nil {
		return
	}
	at := place{kind, namespace}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.collections[at] != nil {
		return
	}
	s.collections[at] = &collection{}
	go s.run(ctx, at, list)
}

func (s *store) kind(list client.ObjectList) (string, error) {
	gvk, err := apiutil.GVKForObject(list, s.client.Scheme())
	return gvk.Kind, err
}

func (s *store) run(ctx context.Context, at place, list client.ObjectList) {
	for ctx.Err() == nil {
		pause := retryInterval
		if err := s.session(ctx, at, list); apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
			pause = deniedInterval
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// session lists a collection and applies the events of one watch. The list is published once the watch is open.
func (s *store) session(ctx context.Context, at place, prototype client.ObjectList) error {
	list, ok := prototype.DeepCopyObject().(client.ObjectList)
	if !ok {
		return fmt.Errorf("%T is no list", prototype)
	}
	if err := s.client.List(ctx, list, client.InNamespace(at.namespace)); err != nil {
		s.update(at, func(c *collection) { c.err = err })
		return err
	}
	objects := map[client.ObjectKey]client.Object{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			objects[client.ObjectKeyFromObject(object)] = object
		}
		return nil
	})
	if err != nil {
		return err
	}
	events, watchErr := s.client.Watch(ctx, list, client.InNamespace(at.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	s.update(at, func(c *collection) { c.objects, c.err = objects, nil })
	if watchErr != nil {
		return watchErr
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-events.ResultChan():
			if !open {
				return nil
			}
			if err := s.apply(at, event); err != nil {
				return err
			}
		}
	}
}

func (s *store) apply(at place, event watch.Event) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	object, ok := event.Object.(client.Object)
	if !ok {
		return nil
	}
	s.update(at, func(c *collection) {
		switch event.Type {
		case watch.Added, watch.Modified:
			c.objects[client.ObjectKeyFromObject(object)] = object
		case watch.Deleted:
			delete(c.objects, client.ObjectKeyFromObject(object))
		}
	})
	return nil
}

func (s *store) update(at place, change func(*collection)) {
	s.mu.Lock()
	change(s.collections[at])
	s.mu.Unlock()
	s.changed()
}

// synced reports whether the API server has answered for all collections.
func (s *store) synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.collections {
		if c.objects == nil && c.err == nil {
			return false
		}
	}
	return true
}

// denied reports whether the user may not list a kind in a namespace.
func (s *store) denied(list client.ObjectList, namespace string) bool {
	kind, err := s.kind(list)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[place{kind, namespace}]
	return c != nil && apierrors.IsForbidden(c.err)
}

// Get implements client.Reader.
func (s *store) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	return s.client.Get(ctx, key, object, o...)
}

// List implements client.Reader for the kinds that are followed.
func (s *store) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind, err := s.kind(list)
	if err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[place{kind, options.Namespace}]
	if c == nil {
		c = s.collections[place{kind, ""}]
	}
	if c == nil {
		return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "",
			fmt.Errorf("namespace %q is not watched", options.Namespace))
	}
	if c.err != nil {
		return c.err
	}
	var found []runtime.Object
	for key, object := range c.objects {
		if options.Namespace == "" || key.Namespace == options.Namespace {
			found = append(found, object)
		}
	}
	return meta.SetList(list, found)
}
