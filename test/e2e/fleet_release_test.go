// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// rollout samples the status of a cluster that changes its release, once per second until the change is complete. The
// release of its failingPool does not change.
type rollout struct {
	cluster *suite
	history *record
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	mu   sync.Mutex
	last *sample
}

// beginRelease changes the release of the cluster and its pool, and waits until the control plane changes.
func (s *suite) beginRelease(t *testing.T, release string) *rollout {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &rollout{cluster: s, history: s.record(t), cancel: cancel}
	s.setRelease(t, release)
	r.ended.Go(func() { r.run(ctx) })
	t.Cleanup(cancel)
	s.reach(t, "change of release under way", soon, r.check(func(now *sample) bool {
		return now.clusterLooked() && now.progressing() && !r.history.completed(now)
	}))
	return r
}

func (r *rollout) run(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// The API server has a single replica, so it is unavailable for some samples.
		if now, err := r.history.sample(ctx, r.cluster); err == nil {
			r.mu.Lock()
			r.last = now
			r.mu.Unlock()
			r.checkFailing(ctx)
		}
	}
}

// checkFailing records each time that failingPool reports ready machines, since all of them fail.
func (r *rollout) checkFailing(ctx context.Context) {
	pool := &hyperv1.NodePool{}
	key := client.ObjectKey{Namespace: journey.Namespace, Name: failingPool}
	if err := r.cluster.c.Get(ctx, key, pool); err != nil {
		return
	}
	for _, condition := range trueOf(pool, hyperv1.NodePoolReadyConditionType,
		hyperv1.NodePoolAllMachinesReadyConditionType) {
		r.history.lies = append(r.history.lies, fmt.Sprintf("pool %s reports %s, and its machines fail", failingPool,
			condition))
	}
}

// check returns a Check that is done when the function is returns true for the last sample.
func (r *rollout) check(is func(*sample) bool) journey.Check {
	return journey.Quick(func() (bool, string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.last == nil {
			return false, "", nil
		}
		return is(r.last), r.last.String(), nil
	})
}

// underWay reports whether the control plane or the pool has not completed the change yet.
func (r *rollout) underWay() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last != nil && !r.done(r.last)
}

func (r *rollout) done(now *sample) bool {
	return r.history.clusterDone(now) && now.poolDone() && !r.history.oldLeft(now)
}

// complete waits until cluster and pool have the release, and checks that no sample had a false status.
func (r *rollout) complete(t *testing.T) {
	t.Helper()
	r.cluster.reach(t, "control plane and pool have the new release", 2*long, r.check(r.done))
	r.cancel()
	r.ended.Wait()
	g := NewWithT(t)
	g.Expect(r.history.lies).To(BeEmpty())
	g.Expect(r.history.sawUpdating).To(BeTrue(), "the pool never said that it was updating")
	r.cluster.reach(t, "node of the new release ready", soon, r.cluster.NodesReady(r.cluster.cluster, 1))
}
