// SPDX-License-Identifier: Apache-2.0

package fairqueue_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/openshift/hypershift/support/fairqueue"
	"github.com/openshift/hypershift/support/testenv"
)

// TestRandomOperations calls the queue as controllers do, in a random order. It compares the queue with sets of the
// requests that are due and those that workers process.
func TestRandomOperations(t *testing.T) {
	random := testenv.Random(t)
	for range 200 {
		runOperations(t, random, 1+random.IntN(12))
	}
}

func runOperations(t *testing.T, random *rand.Rand, workers int) {
	g, q := NewWithT(t), newQueue(t, workers)
	due, held, perNamespace := map[reconcile.Request]bool{}, map[reconcile.Request]bool{}, map[string]int{}
	get := func() {
		free := workers - len(held)
		request, shutdown := q.Get()
		g.Expect(shutdown).To(BeFalse())
		g.Expect(due).To(HaveKey(request), "it was added")
		g.Expect(held).NotTo(HaveKey(request), "another worker has it")
		g.Expect(perNamespace[request.Namespace]*(fairqueue.Share-1)).To(BeNumerically("<", free), "the namespace holds too many workers")
		delete(due, request)
		held[request] = true
		perNamespace[request.Namespace]++
	}
	done := func() {
		for request := range held {
			q.Done(request)
			delete(held, request)
			perNamespace[request.Namespace]--
			return
		}
	}
	for range 200 {
		request := of(fmt.Sprint(random.IntN(4)), fmt.Sprint(random.IntN(8)))
		switch random.IntN(4) {
		case 0:
			q.Add(request)
			due[request] = true
		case 1:
			priority := random.IntN(3)
			q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
			due[request] = true
		case 2:
			done()
		case 3:
			if q.Len() > 0 {
				get()
			}
		}
		allowed := 0
		for request := range due {
			if !held[request] && perNamespace[request.Namespace]*(fairqueue.Share-1) < workers-len(held) {
				allowed++
			}
		}
		g.Expect(q.Len()).To(Equal(allowed))
	}
	for len(due)+len(held) > 0 {
		for q.Len() > 0 {
			get()
		}
		done()
	}
}

// TestWorkersAtOnce drains a queue with concurrent workers. No request is lost or processed by two workers at the same
// time, and no worker sleeps while it may process a request.
func TestWorkersAtOnce(t *testing.T) {
	const namespaces, names, rounds = 5, 20, 20
	q := newQueue(t, workers)
	var mu sync.Mutex
	handled, busy := map[reconcile.Request]int{}, map[reconcile.Request]bool{}
	var all, ended sync.WaitGroup
	for range workers {
		ended.Go(func() {
			for {
				request, shutdown := q.Get()
				if shutdown {
					return
				}
				mu.Lock()
				if busy[request] {
					t.Errorf("%s is with two workers", request)
				}
				busy[request] = true
				handled[request]++
				again := handled[request] < rounds
				mu.Unlock()
				if again {
					q.Add(request)
				}
				mu.Lock()
				busy[request] = false
				mu.Unlock()
				q.Done(request)
				if !again {
					all.Done()
				}
			}
		})
	}
	all.Add(namespaces * names)
	for i := range namespaces * names {
		q.Add(of(fmt.Sprint(i%namespaces), fmt.Sprint(i)))
	}
	all.Wait()
	q.ShutDown()
	ended.Wait()
	for request, n := range handled {
		if n != rounds {
			t.Errorf("%s was handled %d times, want %d", request, n, rounds)
		}
	}
}
