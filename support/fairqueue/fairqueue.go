// SPDX-License-Identifier: Apache-2.0

// Package fairqueue is a work queue that shares a controller's workers among namespaces.
//
// client-go's work queue provides deduplication, delays, rate limits and metrics. This package decides only which
// request is next. The namespaces take turns. A namespace gets a worker only while it uses less than a third of the
// number of free workers. One namespace thus uses at most a quarter of the workers, a second one a quarter of the rest,
// and so on. The numbers are rounded up.
package fairqueue

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Share is the part of the workers that one namespace may use: one in Share, rounded up.
const Share = 4

// Limiter is the rate limiter of a controller.
type Limiter = workqueue.TypedRateLimiter[reconcile.Request]

// For returns the constructor of queues for controllers with this number of workers, for controller.Options.NewQueue.
func For(workers int) func(name string, limiter Limiter) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, limiter Limiter) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return New(name, workers, limiter, clock.RealClock{})
	}
}

// New returns a queue for a controller with this number of workers. The clock times delays and metrics; an unnamed
// queue has no metrics.
func New(name string, workers int, limiter Limiter, c clock.WithTicker) priorityqueue.PriorityQueue[reconcile.Request] {
	turns := newTurns(workers)
	gate := &gate{turns: turns, Typed: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{
		Name: name, Clock: c, Queue: turns,
	})}
	gate.changed = sync.NewCond(&gate.mu)
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
		Name: name, Clock: c, Queue: gate,
	})
	return &queue{turns: turns, limiter: limiter,
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: c, DelayingQueue: delaying})}
}

// queue adds priorities to a rate limiting queue.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	turns   *turns
	limiter Limiter
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *queue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, request := range requests {
		after := o.After
		if o.RateLimited {
			if limited := q.limiter.When(request); after == 0 || limited < after {
				after = limited
			}
		}
		q.turns.prefer(request, ptr.Deref(o.Priority, 0))
		q.TypedRateLimitingInterface.AddAfter(request, after)
	}
}

// Add implements workqueue.TypedInterface, with priority 0.
func (q *queue) Add(request reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, request) }

// AddAfter implements workqueue.TypedDelayingInterface, with priority 0.
func (q *queue) AddAfter(request reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface, with priority 0.
func (q *queue) AddRateLimited(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *queue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	request, shutdown = q.Get()
	return request, q.turns.priorityOf(request), shutdown
}

// gate blocks a worker until there is a request that it may process. The embedded queue wakes one worker for each new
// request. That is too few here: a worker that becomes free can allow the requests of several namespaces.
type gate struct {
	*workqueue.Typed[reconcile.Request]
	turns   *turns
	mu      sync.Mutex
	changed *sync.Cond
}

// Add implements workqueue.TypedInterface.
func (g *gate) Add(request reconcile.Request) {
	g.Typed.Add(request)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed.Signal()
}

// Get implements workqueue.TypedInterface. A shutdown drops the remaining requests, as controllers expect.
func (g *gate) Get() (request reconcile.Request, shutdown bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.Len() == 0 && !g.ShuttingDown() {
		g.changed.Wait()
	}
	if g.ShuttingDown() {
		return reconcile.Request{}, true
	}
	// Typed.Get does not block: only Get reduces Len, and this goroutine has the lock.
	return g.Typed.Get()
}

// Done implements workqueue.TypedInterface.
func (g *gate) Done(request reconcile.Request) {
	g.turns.release(request)
	g.Typed.Done(request)
	g.wakeAll()
}

// ShutDown implements workqueue.TypedInterface.
func (g *gate) ShutDown() {
	g.Typed.ShutDown()
	g.wakeAll()
}

// ShutDownWithDrain calls ShutDown: controllers do not drain their queues.
func (g *gate) ShutDownWithDrain() { g.ShutDown() }

func (g *gate) wakeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed.Broadcast()
}
