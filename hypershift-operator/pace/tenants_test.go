// SPDX-License-Identifier: Apache-2.0

package pace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/openshift/hypershift/hypershift-operator/pace"
)

// TestLimiter checks that only requests beyond the burst of their own namespace wait. It uses fake time.
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, limiter, start := NewWithT(t), pace.NewLimiter(), time.Now()
		wait := func(namespace string) time.Duration {
			g.Expect(limiter.Wait(pace.WithNamespace(t.Context(), namespace))).To(Succeed())
			return time.Since(start)
		}
		for range 200 {
			g.Expect(wait("busy")).To(BeZero(), "a burst does not wait")
		}
		g.Expect(wait("victim")).To(BeZero(), "another namespace does not wait")
		g.Expect(limiter.TryAccept()).To(BeTrue(), "nor does the operator's own work")
		limiter.Accept()
		g.Expect(wait("busy")).To(BeNumerically("~", 10*time.Millisecond, time.Millisecond))
		g.Expect(limiter.QPS()).To(BeEquivalentTo(100))
		limiter.Stop()
	})
}

func TestByNamespace(t *testing.T) {
	g, seen := NewWithT(t), ""
	r := pace.ByNamespace(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		seen = pace.NamespaceOf(ctx)
		return reconcile.Result{}, nil
	}))
	_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "tenant", Name: "x"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seen).To(Equal("tenant"))
	g.Expect(pace.NamespaceOf(t.Context())).To(BeEmpty())
}
