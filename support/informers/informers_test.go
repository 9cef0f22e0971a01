// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/informers"
	"github.com/openshift/hypershift/support/metrics/metricstest"
)

const sample = `hypershift_cache_synced{cluster="management",kind="NodePool"}`

// server is a fake API server that fails, or answers with one NodePool.
type server struct {
	fails atomic.Bool
	lists atomic.Int64
	watch atomic.Pointer[watch.FakeWatcher]
}

func (s *server) list(_ context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	s.lists.Add(1)
	if s.fails.Load() {
		return nil, errors.New("the API server is away")
	}
	pool := hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "pool", ResourceVersion: "1"}}
	return &hyperv1.NodePoolList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []hyperv1.NodePool{pool}}, nil
}

func (s *server) follow(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("this server has lists only")
	}
	followed := watch.NewFake()
	s.watch.Store(followed)
	return followed, nil
}

func TestCheck(t *testing.T) {
	// The default error handlers rate-limit with a start time from before the test's fake clock.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	defer func() { utilruntime.ErrorHandlers = handlers }()
	synctest.Test(t, func(t *testing.T) {
		g, scheme := NewWithT(t), runtime.NewScheme()
		g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
		set, metric, s := informers.New(scheme, clock.RealClock{}), informers.NewMetric(), &server{}
		metric.Add("management", set)
		s.fails.Store(true)
		lw := &toolscache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.follow}
		informer := set.NewInformer(lw, &hyperv1.NodePool{}, 0, toolscache.Indexers{})
		gvk, key := hyperv1.GroupVersion.WithKind("NodePool"), types.NamespacedName{Namespace: "a", Name: "pool"}
		go informer.RunWithContext(t.Context())

		// The cache has not had time to fill yet: this is not a problem.
		synctest.Wait()
		g.Expect(set.Check(nil)).To(Succeed())
		<-time.After(informers.Timeout)
		g.Expect(set.Check(nil)).To(MatchError(And(ContainSubstring("NodePool"), ContainSubstring("the API server is away"))))
		g.Expect(metricstest.Of(t, metric)).To(HaveKeyWithValue(sample, 0.0))
		g.Expect(set.Lookup(gvk, key)).To(BeNil())

		// The cache fills.
		s.fails.Store(false)
		<-time.After(informers.Timeout)
		g.Expect(set.Check(nil)).To(Succeed())
		g.Expect(metricstest.Of(t, metric)).To(HaveKeyWithValue(sample, 1.0))
		g.Expect(set.Lookup(gvk, key)).To(HaveField("Name", "pool"))

		// The API server fails later, and the informer cannot list again.
		s.fails.Store(true)
		s.watch.Load().Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		<-time.After(informers.Timeout / 2)
		g.Expect(set.Check(nil)).To(Succeed(), "a failure of a minute is no problem")
		<-time.After(informers.Timeout)
		g.Expect(set.Check(nil)).To(MatchError(ContainSubstring("stale")))
		g.Expect(set.Lookup(gvk, key)).To(HaveField("Name", "pool"))
	})
}
