// SPDX-License-Identifier: Apache-2.0

package fairqueue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/openshift/hypershift/support/fairqueue"
)

const workers = 10

// queue is a queue under test with a fake clock.
type queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	clock *clocktesting.FakeClock
}

func newQueue(t *testing.T, workers int) queue {
	t.Helper()
	c := clocktesting.NewFakeClock(time.Now())
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute)
	q := queue{PriorityQueue: fairqueue.New("", workers, limiter, c), clock: c}
	t.Cleanup(q.ShutDown)
	return q
}

func of(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

func (q queue) fill(namespace string, n int) {
	for i := range n {
		q.Add(of(namespace, fmt.Sprint(i)))
	}
}

// take returns all requests that workers may process now.
func (q queue) take() (taken []reconcile.Request) {
	for q.Len() > 0 {
		request, _ := q.Get()
		taken = append(taken, request)
	}
	return taken
}

func count(requests []reconcile.Request, namespace string) (n int) {
	for _, request := range requests {
		if request.Namespace == namespace {
			n++
		}
	}
	return n
}

func TestWorkersAreShared(t *testing.T) {
	t.Run("one namespace holds a quarter of the workers", func(t *testing.T) {
		g, q := NewWithT(t), newQueue(t, workers)
		q.fill("a", 500)
		g.Expect(q.take()).To(HaveLen(3))
	})
	t.Run("a namespace that comes later is served at once", func(t *testing.T) {
		g, q := NewWithT(t), newQueue(t, workers)
		q.fill("a", 500)
		q.take()
		q.Add(of("b", "only"))
		g.Expect(q.take()).To(ConsistOf(of("b", "only")))
	})
	t.Run("each further namespace holds a quarter of the remaining workers", func(t *testing.T) {
		g, q := NewWithT(t), newQueue(t, workers)
		for _, c := range []struct {
			namespace string
			held      int
		}{{"a", 3}, {"b", 2}, {"c", 2}, {"d", 1}, {"e", 1}, {"f", 1}, {"g", 0}} {
			q.fill(c.namespace, 500)
			g.Expect(q.take()).To(HaveLen(c.held), c.namespace)
		}
	})
	t.Run("namespaces take turns", func(t *testing.T) {
		g, q := NewWithT(t), newQueue(t, 1)
		for _, namespace := range []string{"a", "b", "c"} {
			q.fill(namespace, 3)
		}
		var order []string
		for range 9 {
			request, _ := q.Get()
			order = append(order, request.Namespace+request.Name)
			q.Done(request)
		}
		g.Expect(order).To(Equal([]string{"a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"}))
	})
	t.Run("a namespace that always has more does not get more turns", func(t *testing.T) {
		g, q := NewWithT(t), newQueue(t, 1)
		q.fill("a", 500)
		q.fill("b", 50)
		for range 50 {
			first, _ := q.Get()
			q.Add(first) // The object is reconciled again and again.
			q.Done(first)
			second, _ := q.Get()
			q.Done(second)
			g.Expect([]string{first.Namespace, second.Namespace}).To(Equal([]string{"a", "b"}))
		}
	})
	t.Run("a controller with one worker serves all requests", func(t *testing.T) {
		g, q := NewWithT(t), newQueue(t, 1)
		q.fill("a", 2)
		g.Expect(q.take()).To(Equal([]reconcile.Request{of("a", "0")}))
		q.Done(of("a", "0"))
		g.Expect(q.take()).To(Equal([]reconcile.Request{of("a", "1")}))
	})
	t.Run("cluster-scoped requests share one namespace", func(t *testing.T) {
		g, q := NewWithT(t), newQueue(t, workers)
		q.fill("", 20)
		q.fill("a", 1)
		taken := q.take()
		g.Expect(count(taken, "")).To(BeNumerically("<=", 5))
		g.Expect(count(taken, "a")).To(Equal(1))
	})
}

func TestOneRequestIsWithOneWorker(t *testing.T) {
	g, q := NewWithT(t), newQueue(t, workers)
	q.Add(of("a", "x"))
	q.Add(of("a", "x"))
	g.Expect(q.take()).To(HaveLen(1))
	q.Add(of("a", "x"))
	q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(7)}, of("a", "x"))
	g.Expect(q.take()).To(BeEmpty(), "a worker has it")
	q.Done(of("a", "x"))
	request, priority, shutdown := q.GetWithPriority()
	g.Expect(request).To(Equal(of("a", "x")))
	g.Expect(priority).To(Equal(7))
	g.Expect(shutdown).To(BeFalse())
	q.Done(request)
	g.Expect(q.take()).To(BeEmpty())
	q.Done(of("a", "never taken"))
	q.fill("a", 50)
	g.Expect(q.take()).To(HaveLen(3), "returning a request that no worker holds frees no worker")
}

func TestPriorities(t *testing.T) {
	low := priorityqueue.AddOpts{Priority: ptr.To(-100)}
	t.Run("the highest priority is first, whatever the namespace", func(t *testing.T) {
		g, q := NewWithT(t), newQueue(t, workers)
		q.AddWithOpts(low, of("a", "low"), of("b", "low"))
		q.Add(of("b", "normal"))
		q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(1)}, of("b", "high"))
		g.Expect(q.take()).To(Equal([]reconcile.Request{of("b", "high"), of("b", "normal"), of("a", "low"), of("b", "low")}))
	})
	t.Run("a request that is added again keeps the higher priority", func(t *testing.T) {
		g, q := NewWithT(t), newQueue(t, workers)
		q.AddWithOpts(low, of("a", "1"), of("a", "2"), of("a", "3"))
		q.Add(of("a", "3"))
		q.AddWithOpts(low, of("a", "3"))
		g.Expect(q.take()).To(Equal([]reconcile.Request{of("a", "3"), of("a", "1"), of("a", "2")}))
	})
	t.Run("a raised request comes after older requests of the same priority", func(t *testing.T) {
		g, q := NewWithT(t), newQueue(t, workers)
		q.AddWithOpts(low, of("a", "raised"))
		q.Add(of("a", "first"))
		q.Add(of("a", "raised"))
		g.Expect(q.take()).To(Equal([]reconcile.Request{of("a", "first"), of("a", "raised")}))
	})
	t.Run("a namespace with urgent requests leaves workers for others", func(t *testing.T) {
		g, q := NewWithT(t), newQueue(t, workers)
		q.AddWithOpts(low, of("b", "low"))
		q.fill("a", 500)
		g.Expect(q.take()).To(ContainElement(of("b", "low")))
	})
}

func TestDelays(t *testing.T) {
	arrives := func(q queue) { Eventually(q.Len).WithTimeout(time.Minute).Should(Equal(1)) }
	t.Run("a delayed request arrives after its delay, with its priority", func(t *testing.T) {
		RegisterTestingT(t)
		q := newQueue(t, workers)
		q.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, Priority: ptr.To(3)}, of("a", "x"))
		Eventually(q.clock.HasWaiters).Should(BeTrue())
		Expect(q.Len()).To(BeZero())
		q.clock.Step(time.Hour)
		arrives(q)
		_, priority, _ := q.GetWithPriority()
		Expect(priority).To(Equal(3))
	})
	t.Run("a failing request waits longer each time, until Forget", func(t *testing.T) {
		RegisterTestingT(t)
		q := newQueue(t, workers)
		for i, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			q.AddRateLimited(of("a", "x"))
			Expect(q.NumRequeues(of("a", "x"))).To(Equal(i + 1))
			q.clock.Step(wait)
			arrives(q)
			Expect(q.take()).To(HaveLen(1))
			q.Done(of("a", "x"))
		}
		q.Forget(of("a", "x"))
		Expect(q.NumRequeues(of("a", "x"))).To(BeZero())
	})
	t.Run("the shorter of two delays applies", func(t *testing.T) {
		RegisterTestingT(t)
		q := newQueue(t, workers)
		q.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, RateLimited: true}, of("a", "x"))
		q.clock.Step(time.Second)
		arrives(q)
	})
	t.Run("a request that is added with a delay and then without one is ready immediately", func(t *testing.T) {
		RegisterTestingT(t)
		q := newQueue(t, workers)
		q.AddAfter(of("a", "x"), time.Hour)
		q.Add(of("a", "x"))
		Expect(q.take()).To(HaveLen(1))
	})
}

func TestShutDown(t *testing.T) {
	g, q := NewWithT(t), newQueue(t, workers)
	q.fill("a", 500)
	q.take()
	ended := make(chan bool)
	for range 5 {
		go func() {
			_, shutdown := q.Get()
			ended <- shutdown
		}()
	}
	q.ShutDownWithDrain()
	for range 5 {
		g.Expect(<-ended).To(BeTrue())
	}
	g.Expect(q.ShuttingDown()).To(BeTrue())
	_, _, shutdown := q.GetWithPriority()
	g.Expect(shutdown).To(BeTrue(), "what is left is dropped")
	q.Add(of("b", "late"))
	_, shutdown = q.Get()
	g.Expect(shutdown).To(BeTrue())
}

func TestMetrics(t *testing.T) {
	g := NewWithT(t)
	q := fairqueue.For(workers)("fairqueue-test", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	q.Add(of("a", "x"))
	q.Add(of("a", "y"))
	g.Expect(metric(t, "workqueue_depth")).To(BeEquivalentTo(2))
	g.Expect(metric(t, "workqueue_adds_total")).To(BeEquivalentTo(2))
	request, _ := q.Get()
	g.Expect(metric(t, "workqueue_depth")).To(BeEquivalentTo(1))
	q.Done(request)
	g.Expect(metric(t, "workqueue_work_duration_seconds")).To(BeEquivalentTo(1))
}

// metric returns the value of a metric of the queue fairqueue-test; for a histogram, its count.
func metric(t *testing.T, name string) float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.(prometheus.Gatherer).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			ours := slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
				return l.GetName() == "name" &&
					l.GetValue() == "fairqueue-test"
			})
			if family.GetName() == name && ours {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
