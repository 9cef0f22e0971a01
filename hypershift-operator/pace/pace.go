// SPDX-License-Identifier: Apache-2.0

// Package pace configures the concurrency and backoff of the operator's controllers, and how they share their workers
// among namespaces.
package pace

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/openshift/hypershift/support/fairqueue"
	"github.com/openshift/hypershift/support/phase"
)

const (
	// Workers is the number of workers of each controller. One namespace uses a quarter of them at most, so clusters that
	// wait for a registry or a platform do not delay others.
	Workers      = 24
	firstBackoff = time.Second
	lastBackoff  = 10 * time.Second
)

// Options returns the options of a controller of tenants' objects. It reconciles several objects concurrently, and
// shares its workers among their namespaces. It retries a failed object after 1 s at first and after 10 s at most.
func Options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: Workers,
		RateLimiter:             phase.Backoff(firstBackoff, lastBackoff),
		NewQueue:                fairqueue.For(Workers),
	}
}
