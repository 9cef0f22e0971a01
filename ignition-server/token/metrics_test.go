// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"

	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/openshift/hypershift/support/metrics/metricstest"
)

// TestMetrics: each thing that happens to a token is counted once, in the registry that the metrics endpoint serves.
func TestMetrics(t *testing.T) {
	g, r, clock := newReconciler(t, interceptor.Funcs{}, tokenSecret(now))
	pass := func() {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		g.Expect(err).NotTo(HaveOccurred())
	}
	before := metricstest.Of(t, Collectors()...)
	pass()
	clock.SetTime(now.Add(TTL / 2))
	pass()
	g.Expect(r.Served(t.Context(), Entry{Secret: key, NodePool: "clusters/counted"})).To(Succeed())
	r.Missed()
	r.Refused()
	after := metricstest.Of(t, Collectors()...)
	more := func(name string) float64 { return after[name] - before[name] }
	g.Expect(more(`ign_server_token_rotation_total`)).To(Equal(1.0))
	g.Expect(more(`ign_server_get_request{nodePool="clusters/counted"}`)).To(Equal(1.0))
	g.Expect(more(`ign_server_payload_cache_miss_total`)).To(Equal(1.0))
	g.Expect(more(`ign_server_node_refusals_total`)).To(Equal(1.0))
	g.Expect(more(`ign_server_payload_generation_seconds_count`)).To(BeNumerically(">=", 1))
	g.Expect(after).To(HaveKey(`ign_server_payload_cache_total`))

	served, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]*dto.MetricFamily{}
	for _, family := range served {
		found[family.GetName()] = family
	}
	for _, name := range []string{"ign_server_token_rotation_total", "ign_server_get_request", "ign_server_payload_cache_miss_total", "ign_server_node_refusals_total",
		"ign_server_payload_generation_seconds", "ign_server_payload_cache_total"} {
		g.Expect(found).To(HaveKey(name))
	}
	var bounds []float64
	for _, bucket := range found["ign_server_payload_generation_seconds"].GetMetric()[0].GetHistogram().GetBucket() {
		bounds = append(bounds, bucket.GetUpperBound())
	}
	g.Expect(bounds).To(Equal([]float64{5, 15, 30, 45, 60}), "seconds, as dashboards know them")
}

// TestConfigWithoutName: a node that names no configuration gets none, also where the pool's has no name.
func TestConfigWithoutName(t *testing.T) {
	g, r, _ := newReconciler(t, interceptor.Funcs{})
	r.Cache.Put(Entry{Secret: key, NodePool: "clusters/a", Payload: []byte("1")}, "a")
	_, ok := r.Cache.Config("clusters/a", "")
	g.Expect(ok).To(BeFalse())
	r.Cache.Put(Entry{Secret: key, NodePool: "clusters/a", Hash: "0a1b", Payload: []byte("1")}, "a")
	_, ok = r.Cache.Config("clusters/a", "0a1b")
	g.Expect(ok).To(BeTrue())
}
