// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"container/heap"
	"math"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// turns orders requests. It implements workqueue.Queue; the work queue calls its methods with its lock held.
type turns struct {
	mu sync.Mutex
	// free is the number of idle workers.
	free int
	// tick numbers requests and turns.
	tick uint64
	// namespaces holds the namespaces with waiting requests or busy workers.
	namespaces map[string]*namespace
	// waiting holds the requests in this queue. priorities holds the priorities of requests that were added with one,
	// waiting or delayed.
	waiting    map[reconcile.Request]*entry
	priorities map[reconcile.Request]int
	// taken holds the requests that workers process, with their priorities.
	taken map[reconcile.Request]int
}

// namespace holds the waiting requests of one namespace, and the number of workers that it uses.
type namespace struct {
	entries entries
	held    int
	// turn is the tick at which the namespace last got a worker, or at which its first request was added.
	turn uint64
}

type entry struct {
	request  reconcile.Request
	priority int
	added    uint64
	index    int
}

func newTurns(workers int) *turns {
	return &turns{
		free: max(workers, 1), namespaces: map[string]*namespace{}, waiting: map[reconcile.Request]*entry{},
		priorities: map[reconcile.Request]int{}, taken: map[reconcile.Request]int{},
	}
}

// Push implements workqueue.Queue.
func (t *turns) Push(request reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.namespaces[request.Namespace]
	if n == nil {
		n = &namespace{turn: t.next()}
		t.namespaces[request.Namespace] = n
	}
	e := &entry{request: request, priority: t.priorities[request], added: t.next()}
	t.waiting[request] = e
	heap.Push(&n.entries, e)
}

// Touch implements workqueue.Queue. It does nothing: prefer moves a request whose priority rises.
func (*turns) Touch(reconcile.Request) {}

// Len implements workqueue.Queue. It returns the number of requests that a worker may process now.
func (t *turns) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, each := range t.namespaces {
		if t.allows(each) {
			n += len(each.entries)
		}
	}
	return n
}

// Pop implements workqueue.Queue. It returns the request with the highest priority. Among namespaces with the same
// priority, it chooses the one that has waited longest.
func (t *turns) Pop() reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	var best *namespace
	priority := math.MinInt
	for _, n := range t.namespaces {
		if !t.allows(n) {
			continue
		}
		if p := n.entries[0].priority; best == nil || p > priority || (p == priority && n.turn < best.turn) {
			best, priority = n, p
		}
	}
	if best == nil {
		return reconcile.Request{} // Len was zero: the work queue does not call Pop then.
	}
	best.turn = t.next()
	best.held++
	t.free--
	e := heap.Pop(&best.entries).(*entry) //nolint:forcetypeassert // It holds nothing else.
	delete(t.waiting, e.request)
	delete(t.priorities, e.request)
	t.taken[e.request] = e.priority
	return e.request
}

// allows reports whether a namespace has a request that may go to a worker.
func (t *turns) allows(n *namespace) bool {
	return len(n.entries) > 0 && n.held*(Share-1) < t.free
}

// release makes the worker of a request idle.
func (t *turns) release(request reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, held := t.taken[request]; !held {
		return
	}
	delete(t.taken, request)
	t.free++
	n := t.namespaces[request.Namespace]
	n.held--
	if n.held == 0 && len(n.entries) == 0 {
		delete(t.namespaces, request.Namespace)
	}
}

// prefer records the highest priority with which a request was added. It moves a waiting request behind those that
// already have that priority.
func (t *turns) prefer(request reconcile.Request, priority int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, set := t.priorities[request]; set && before >= priority {
		return
	}
	t.priorities[request] = priority
	if e := t.waiting[request]; e != nil {
		e.priority, e.added = priority, t.next()
		heap.Fix(&t.namespaces[request.Namespace].entries, e.index)
	}
}

// priorityOf returns the priority of a request that a worker processes.
func (t *turns) priorityOf(request reconcile.Request) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken[request]
}

func (t *turns) next() uint64 {
	t.tick++
	return t.tick
}

// entries is a heap: the highest priority first, and the oldest among equals.
type entries []*entry

func (e entries) Len() int { return len(e) }

func (e entries) Less(i, j int) bool {
	if e[i].priority != e[j].priority {
		return e[i].priority > e[j].priority
	}
	return e[i].added < e[j].added
}

func (e entries) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].index, e[j].index = i, j
}

// Push implements heap.Interface.
func (e *entries) Push(x any) {
	added := x.(*entry) //nolint:forcetypeassert // It holds nothing else.
	added.index = len(*e)
	*e = append(*e, added)
}

// Pop implements heap.Interface.
func (e *entries) Pop() any {
	last := len(*e) - 1
	popped := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return popped
}
