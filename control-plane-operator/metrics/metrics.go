// SPDX-License-Identifier: Apache-2.0

// Package metrics contains the control-plane-operator's Prometheus metrics of a hosted control plane.
package metrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/metrics"
	"github.com/openshift/hypershift/support/pki"
)

// New returns the collector of the hosted namespace that a cache holds.
func New(reader client.Reader, namespace string, clock clock.PassiveClock) prometheus.Collector {
	s := metrics.NewSnapshot(clock)
	expiry := s.Gauge("hypershift_control_plane_certificate_expiry_timestamp_seconds",
		"When the first of the certificates in a Secret of the control plane expires, in seconds since 1970.", "namespace", "secret")
	s.Compute = func(ctx context.Context) error {
		secrets := &corev1.SecretList{}
		if err := reader.List(ctx, secrets, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing the Secrets of namespace %s: %w", namespace, err)
		}
		for i := range secrets.Items {
			if at := pki.FirstToExpire(&secrets.Items[i]); !at.IsZero() {
				expiry.WithLabelValues(namespace, secrets.Items[i].Name).Set(float64(at.Unix()))
			}
		}
		return nil
	}
	return s
}
