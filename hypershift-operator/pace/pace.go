// SPDX-License-Identifier: Apache-2.0

// Package pace says how fast the controllers of the operator work.
package pace

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/openshift/hypershift/support/phase"
)

const (
	// workers let a cluster that waits for a registry or a platform hold nobody else up.
	workers      = 10
	firstBackoff = time.Second
	lastBackoff  = 10 * time.Second
)

// Options are those of a controller of clusters or pools: several at once, and a failing one again after a second at
// first and never later than after ten.
func Options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             phase.Backoff(firstBackoff, lastBackoff),
	}
}
