// SPDX-License-Identifier: Apache-2.0

// Package pace says how fast the controllers of the operator work, and how they share their workers among namespaces.
package pace

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/openshift/hypershift/support/fairqueue"
	"github.com/openshift/hypershift/support/phase"
)

const (
	// workers let clusters that wait for a registry or a platform not delay others.
	workers      = 10
	firstBackoff = time.Second
	lastBackoff  = 10 * time.Second
)

// Options are those of a controller of tenants' objects. It reconciles several objects at once, shares its workers
// among their namespaces, and tries a failing object again after a second at first and after ten seconds at most.
func Options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             phase.Backoff(firstBackoff, lastBackoff),
		NewQueue:                fairqueue.For(workers),
	}
}
