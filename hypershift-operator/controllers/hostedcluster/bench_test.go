// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// BenchmarkReconcile measures a reconcile of a cluster without changes. It reports the time, with reads from the API
// server instead of a cache, and the writes, which must be zero. It also reports the time and writes of the creation
// of the cluster's objects.
func BenchmarkReconcile(b *testing.B) {
	c := fixture.NewFaulty(fixture.Start(b))
	fixture.Create(b, c.WithWatch, append(fixture.Inputs("bench"), fixture.HostedCluster("bench"))...)
	before := c.Writes()
	r := &Reconciler{
		Client: c, LiveReader: c, Clock: clock.RealClock{}, Recorder: &events.FakeRecorder{}, Releases: fixture.Payloads(),
		Platforms: fixture.Platforms(nil), Settings: Settings{OperatorImage: operatorImage},
	}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "bench", Name: fixture.ClusterName}}
	pass := func() {
		if _, err := r.Reconcile(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
	start := time.Now()
	for last := int64(-1); last != c.Writes(); {
		last = c.Writes()
		pass()
	}
	made, took := c.Writes()-before, time.Since(start)
	for b.Loop() {
		pass()
	}
	b.ReportMetric(float64(took.Milliseconds()), "ms-to-make")
	b.ReportMetric(float64(made), "writes-to-make")
	b.ReportMetric(float64(c.Writes()-before-made)/float64(b.N), "writes/op")
}
