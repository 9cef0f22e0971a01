// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/pace"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/tenantlimits"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	hostile      = "hostile"
	hostilePools = 500
	// neighbourSamples is the number of changes whose duration is measured, so that a 99th percentile exists.
	neighbourSamples = 200
	// registryTimeout is how long the operator waits for a registry that does not answer.
	registryTimeout = 15 * time.Second
)

// blackHole is a release.Lookup whose registry does not answer requests for the hostile tenant.
type blackHole struct{ fixture.Releases }

func (b blackHole) Lookup(ctx context.Context, image string, access release.Access) (*releaseinfo.ReleaseImage, error) {
	if pace.NamespaceOf(ctx) != hostile {
		return b.Releases.Lookup(ctx, image, access)
	}
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	<-ctx.Done()
	return nil, &releaseinfo.Error{Reason: releaseinfo.ReasonNotFound, Image: image, Err: ctx.Err()}
}

// BenchmarkOperatorBesideNeighbour measures how long the complete operator needs to act on a change of a NodePool, on
// a real API server. It measures once without other tenants, and once beside a hostile tenant. That tenant has 500
// NodePools whose registry does not answer and whose annotations change continuously.
func BenchmarkOperatorBesideNeighbour(b *testing.B) {
	config := testenv.Start(b, crds.Folders...)
	c := testenv.Client(b, config, fixture.Scheme())
	flags := &runFlags{
		namespace: "default", metricsAddr: "0", healthAddr: "0", webhookPort: testenv.FreePort(b),
		platforms: registry.All(), limits: tenantlimits.Limits{Registries: []string{"registry.example"}},
	}
	g := NewWithT(b)
	platforms := fixture.Platforms(nil)
	mgr, err := newManager(config, flags, platforms)
	g.Expect(err).NotTo(HaveOccurred())
	releases := blackHole{fixture.Payloads()}
	g.Expect(addControllers(mgr, flags, platforms, "registry.example/hypershift:1", nil, releases)).To(Succeed())
	ctx, cancel := context.WithCancel(b.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	b.Cleanup(func() { cancel(); <-stopped })

	fixture.Create(b, c, fixture.Inputs(namespace)...)
	fixture.Create(b, c, fixture.HostedCluster(namespace), fixture.NodePool(namespace))
	for b.Loop() {
		alone := changes(b, c)
		attack(ctx, b, c)
		beside := changes(b, c)
		b.ReportMetric(float64(p99(alone).Milliseconds()), "ms-p99-alone")
		b.ReportMetric(float64(p99(beside).Milliseconds()), "ms-p99-beside")
		b.ReportMetric(100*float64(p99(beside))/float64(p99(alone)), "%-of-p99-alone")
	}
}

func p99(times []time.Duration) time.Duration { return times[len(times)*99/100] }

// changes scales the victim's pool repeatedly. It returns the sorted durations until the status reflects each change.
func changes(b *testing.B, c client.WithWatch) []time.Duration {
	b.Helper()
	took := make([]time.Duration, 0, neighbourSamples)
	pool := &hyperv1.NodePool{}
	key := client.ObjectKey{Namespace: namespace, Name: fixture.PoolName}
	for i := range neighbourSamples {
		started := time.Now()
		NewWithT(b).Eventually(func(g Gomega) {
			g.Expect(c.Get(b.Context(), key, pool)).To(Succeed())
			pool.Spec.Replicas = ptr.To(int32(2 + i%2))
			g.Expect(c.Update(b.Context(), pool)).To(Succeed())
		}, patience, tick).Should(Succeed())
		NewWithT(b).Eventually(func(g Gomega) {
			g.Expect(c.Get(b.Context(), key, pool)).To(Succeed())
			g.Expect(pool.Status.Conditions).To(ContainElement(HaveField("ObservedGeneration", pool.Generation)))
		}, patience, 10*time.Millisecond).Should(Succeed())
		took = append(took, time.Since(started))
	}
	slices.Sort(took)
	return took
}

// attack creates the hostile tenant's pools and changes their annotations until the context ends.
func attack(ctx context.Context, b *testing.B, c client.WithWatch) {
	b.Helper()
	fixture.Create(b, c, append(fixture.Inputs(hostile), fixture.HostedCluster(hostile))...)
	for i := range hostilePools {
		pool := fixture.NodePool(hostile)
		pool.Name = fmt.Sprint("pool-", i)
		pool.Spec.Release.Image = fmt.Sprint("registry.example/release:", i)
		fixture.Create(b, c, pool)
	}
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			name := fmt.Sprint("pool-", i%hostilePools)
			pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: hostile, Name: name}}
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"flaps":"%d"}}}`, i)
			_ = c.Patch(ctx, pool, client.RawPatch("application/merge-patch+json", patch))
		}
	}()
}
