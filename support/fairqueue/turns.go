// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"container/heap"
	"math"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// turns orders requests. It implements workqueue.Queue, whose methods the work queue calls under its lock.
type turns struct {
	mu sync.Mutex
	// free is the number of workers that hold no request.
	free int
	// tick numbers requests and turns.
	tick uint64
	// namespaces are those that have requests here or hold workers.
	namespaces map[string]*namespace
	// waiting are the requests here, and priorities those of requests that come with one, here or delayed.
	waiting    map[reconcile.Request]*entry
	priorities map[reconcile.Request]int
	// taken are the requests that workers hold, with their priority.
	taken map[reconcile.Request]int
}

// namespace is what one namespace has waiting, and how many workers it holds.
type namespace struct {
	entries entries
	held    int
	// turn is when it got a request last, or when its first request came.
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

// Touch implements workqueue.Queue. It has nothing to do: prefer moves a request whose priority rises.
func (*turns) Touch(reconcile.Request) {}

// Len implements workqueue.Queue. It is the number of requests that a worker may take now.
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

// Pop implements workqueue.Queue. It takes the request with the highest priority, and among namespaces with one of the
// same priority that of the namespace which waits longest.
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
		return reconcile.Request{} // Len was zero: the work queue does not ask.
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
	return len(n.entries) > 0 && n.held < t.free
}

// release returns the worker that a request holds.
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

// prefer keeps the highest priority that a request was added with, and moves one that waits here behind those which
// have that priority already.
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

// priorityOf returns the priority of a request that a worker holds.
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
