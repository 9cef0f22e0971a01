// SPDX-License-Identifier: Apache-2.0

// Package metrics exports Prometheus metrics of HostedClusters and NodePools. They have the names and labels of
// HyperShift, so that its dashboards and alerts work here. All are computed from the cache during a scrape.
package metrics

import (
	"context"
	"fmt"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/metrics"
	"github.com/openshift/hypershift/support/version"
)

// transitionBuckets are the buckets of upstream HyperShift: control planes take minutes. Machines take longer; the
// provider has its own histogram for them.
var transitionBuckets = []float64{5, 10, 20, 30, 60, 90, 120, 180, 240, 300, 360, 480, 600}

// New returns the collector of the management cluster that reader reads.
func New(reader client.Reader, clock clock.PassiveClock) prometheus.Collector {
	s := metrics.NewSnapshot(clock)
	clusters, pools := newClusterMetrics(s), newPoolMetrics(s)
	s.Compute = func(ctx context.Context) error {
		hostedClusters, nodePools := &hyperv1.HostedClusterList{}, &hyperv1.NodePoolList{}
		if err := reader.List(ctx, hostedClusters); err != nil {
			return fmt.Errorf("listing HostedClusters: %w", err)
		}
		if err := reader.List(ctx, nodePools); err != nil {
			return fmt.Errorf("listing NodePools: %w", err)
		}
		sizes, err := wantedMachines(ctx, reader)
		if err != nil {
			return err
		}
		clusters.compute(hostedClusters.Items)
		pools.compute(nodePools.Items, hostedClusters.Items, sizes)
		return nil
	}
	return s
}

// Info returns the collector of the operator's image, digest and supported versions.
func Info(image, imageID, supported string) prometheus.Collector {
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "hypershift_operator_info",
		Help: "Always 1; the labels say which operator works in the management cluster.",
		ConstLabels: prometheus.Labels{
			"version": version.Commit(), "image": image, "imageId": imageID, "latestSupportedVersion": supported,
			"goVersion": runtime.Version(), "goArch": runtime.GOARCH,
		},
	})
	gauge.Set(1)
	return gauge
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
