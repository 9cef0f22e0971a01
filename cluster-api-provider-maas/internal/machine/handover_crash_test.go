// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func diesOverHandOver(t *testing.T, cfg *rest.Config) {
	w, _ := newRun(t, cfg, "m-0")
	w.leave("m-0")
	for n := 1; ; n++ {
		burnt := false
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("m-%d-%t", n, after)
			w.addPlain(name)
			id := w.runsOn(name)
			accept := simtest.Refuse(t, w.Simulator, "machine.release", id, http.StatusConflict, "no")
			w.end(name)
			w.minutes(9, name)
			w.clock.SetTime(w.clock.Now().Add(3 * time.Minute))
			f := &fuse{left: n, after: after}
			w.die(name, f)
			burnt = burnt || f.burnt
			w.Expect(w.gone(name) && len(handover.Records.Of(w.cluster())) == 0).To(BeFalse(), "%s: its machine is forgotten", name)
			w.minutes(3, name)
			w.Expect(w.gone(name)).To(BeTrue(), name)
			w.Expect(handover.Records.Of(w.cluster())).To(HaveLen(1), name)
			accept()
			w.diesTakingBack(n, after)
			w.clock.SetTime(w.clock.Now().Add(time.Hour))
			w.taken()
			w.expectAllFree(name)
		}
		if !burnt {
			w.Expect(n).To(BeNumerically(">", 3))
			return
		}
	}
}

// diesTakingBack makes the process crash while it reconciles the MaasCluster.
func (w *world) diesTakingBack(n int, after bool) {
	f := &fuse{left: n, after: after}
	w.kube = w.fused(f)
	w.before, w.after = func(string) error { return f.before() }, func(string) error { return f.done() }
	w.restart()
	for range 4 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		_ = w.glance()
	}
	w.kube, w.before, w.after = w.client, nil, nil
	w.restart()
}

func clusterGivenUp(t *testing.T, cfg *rest.Config) {
	w, id := newRun(t, cfg, "m")
	stale := w.cluster()
	w.stuck(id)
	w.end("m")
	w.inState(id, status.FailedReleasing)
	w.minutes(8, "m")
	infra := w.cluster()
	infra.Finalizers = []string{"example.com/another"}
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	w.kube = w.remembering(stale)
	w.restart()
	w.clock.SetTime(w.clock.Now().Add(5 * time.Minute))
	w.pass("m")
	w.Expect(w.gone("m")).To(BeFalse(), "the MaasCluster that the cache shows is not the one that is there")
	w.Expect(handover.Records.Of(w.cluster())).To(BeEmpty())
}

// remembering returns a client that acts like a stale cache: each read of a MaasCluster returns infra.
func (w *world) remembering(infra *infrav1.MaasCluster) client.Client {
	c := testenv.Client(w.t, w.cfg, scheme())
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if shown, ok := obj.(*infrav1.MaasCluster); ok {
				infra.DeepCopyInto(shown)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
}
