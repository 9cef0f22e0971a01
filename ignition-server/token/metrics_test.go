// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/openshift/hypershift/support/metrics/metricstest"
)

// TestMetrics checks that each event of a token is counted once, in the registry of the metrics endpoint.
func TestMetrics(t *testing.T) {
	g, r, clock := newReconciler(t, interceptor.Funcs{}, tokenSecret(now))
	served := func() metricstest.Samples { return metricstest.Of(t, metrics.Registry.(prometheus.Collector)) }
	pass := func() {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		g.Expect(err).NotTo(HaveOccurred())
	}
	before := served()
	pass()
	clock.SetTime(now.Add(TTL / 2))
	pass()
	g.Expect(r.Served(t.Context(), Entry{Secret: key, NodePool: "clusters/counted"})).To(Succeed())
	r.Missed()
	r.Refused()
	after := served()
	for name, more := range map[string]float64{
		`ign_server_token_rotation_total`: 1, `ign_server_get_request{nodePool="clusters/counted"}`: 1, `ign_server_payload_cache_miss_total`: 1,
		`ign_server_node_refusals_total`: 1, `ign_server_payload_generation_seconds_count`: 2,
	} {
		g.Expect(after[name]-before[name]).To(Equal(more), name)
	}
	g.Expect(after).To(HaveKeyWithValue(`ign_server_payload_cache_total`, 2.0), "the former token and the new one")
}

// TestSecondsToRender checks that the buckets match those in the dashboards.
func TestSecondsToRender(t *testing.T) {
	g, rendered := NewWithT(t), &dto.Metric{}
	g.Expect(generationSeconds.Write(rendered)).To(Succeed())
	var bounds []float64
	for _, bucket := range rendered.GetHistogram().GetBucket() {
		bounds = append(bounds, bucket.GetUpperBound())
	}
	g.Expect(bounds).To(Equal([]float64{5, 15, 30, 45, 60}))
}

// TestConfigWithoutName checks that a node which requests no configuration gets none, even if the pool's configuration
// has no name.
func TestConfigWithoutName(t *testing.T) {
	g, r, _ := newReconciler(t, interceptor.Funcs{})
	r.Cache.Put(Entry{Secret: key, NodePool: "clusters/a", Payload: []byte("1")}, "a")
	_, ok := r.Cache.Config("clusters/a", "")
	g.Expect(ok).To(BeFalse())
	r.Cache.Put(Entry{Secret: key, NodePool: "clusters/a", Hash: "0a1b", Payload: []byte("1")}, "a")
	_, ok = r.Cache.Config("clusters/a", "0a1b")
	g.Expect(ok).To(BeTrue())
}
