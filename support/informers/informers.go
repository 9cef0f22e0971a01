// SPDX-License-Identifier: Apache-2.0

// Package informers monitors the caches of a manager. It reports caches that are not in sync with the API server, and
// finds the last known state of an object.
package informers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Timeout is the time for which a cache may be out of sync with the API server before it counts as failing. It is
// longer than the longest backoff between two attempts of an informer.
const Timeout = 2 * time.Minute

// Set holds the informers of a manager. It is safe for concurrent use.
type Set struct {
	scheme *runtime.Scheme
	clock  clock.PassiveClock

	mu  sync.Mutex
	all []*informer
}

// informer is an informer of the Set, with a record of its failures.
type informer struct {
	toolscache.SharedIndexInformer

	gvk     schema.GroupVersionKind
	typed   bool
	created time.Time

	mu sync.Mutex
	// since is the time of the first consecutive failure, and last the time of the latest failure. Both are zero
	// before the first failure.
	since, last time.Time
	// version is the resource version that the informer had at the latest failure.
	version string
	cause   error
}

// New returns an empty Set for the informers of a scheme's kinds.
func New(scheme *runtime.Scheme, clock clock.PassiveClock) *Set {
	return &Set{scheme: scheme, clock: clock}
}

// NewInformer adds an informer to the Set. It implements the NewInformer field of cache.Options.
func (s *Set) NewInformer(
	lw toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, by toolscache.Indexers,
) toolscache.SharedIndexInformer {
	i := &informer{
		SharedIndexInformer: toolscache.NewSharedIndexInformer(lw, kind, resync, by), created: s.clock.Now(),
	}
	gvk, err := apiutil.GVKForObject(kind, s.scheme)
	if err != nil {
		gvk.Kind = fmt.Sprintf("%T", kind)
	}
	i.gvk = gvk
	if typed, err := s.scheme.New(gvk); err == nil {
		i.typed = fmt.Sprintf("%T", typed) == fmt.Sprintf("%T", kind)
	}
	// This fails only for a running informer; this one is new.
	_ = i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
		i.failed(s.clock.Now(), err)
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, i)
	return i.SharedIndexInformer
}

// Lookup returns the last state of an object in an informer's cache; nil if no cache has it.
func (s *Set) Lookup(gvk schema.GroupVersionKind, key types.NamespacedName) runtime.Object {
	for _, i := range s.list() {
		if i.gvk != gvk || !i.typed || i.IsStopped() {
			continue
		}
		name := key.Name
		if key.Namespace != "" {
			name = key.String()
		}
		if found, exists, err := i.GetStore().GetByKey(name); err == nil && exists {
			if obj, ok := found.(runtime.Object); ok {
				return obj
			}
		}
	}
	return nil
}

// Check is a readiness check. It fails while a cache is out of sync with the API server.
func (s *Set) Check(*http.Request) error {
	var problems []error
	for _, i := range s.list() {
		if err := i.problem(s.clock.Now()); err != nil {
			problems = append(problems, fmt.Errorf("the cache of %s: %w", i.gvk.Kind, err))
		}
	}
	return errors.Join(problems...)
}

func (s *Set) list() []*informer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*informer(nil), s.all...)
}

// failed records a failure to list or watch. The regular end of a watch is not a failure.
func (i *informer) failed(now time.Time, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	version := i.LastSyncResourceVersion()
	if i.last.IsZero() || now.Sub(i.last) >= Timeout || version != i.version {
		i.since = now
	}
	i.last, i.version, i.cause = now, version, err
}

// problem returns the reason why the informer is out of sync with the API server; nil if it is in sync.
func (i *informer) problem(now time.Time) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.IsStopped() {
		return nil
	}
	if !i.HasSynced() {
		if waited := now.Sub(i.created); waited >= Timeout {
			return fmt.Errorf("not filled for %s: %w", waited.Round(time.Second), i.reason())
		}
		return nil
	}
	recent := !i.last.IsZero() && now.Sub(i.last) < Timeout
	if !recent || now.Sub(i.since) < Timeout || i.LastSyncResourceVersion() != i.version {
		return nil
	}
	return fmt.Errorf("stale for %s: %w", now.Sub(i.since).Round(time.Second), i.cause)
}

func (i *informer) reason() error {
	if i.cause == nil {
		return errors.New("no answer of the API server yet")
	}
	return i.cause
}
