package hostedcontrolplane

import (
	"strings"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// pausedFor reads pausedUntil: true, false, or a time up to which nothing is reconciled. It returns how long that is,
// zero meaning until the field changes.
func pausedFor(until *string, now time.Time) (time.Duration, bool) {
	if until == nil {
		return 0, false
	}
	if strings.EqualFold(*until, "true") {
		return 0, true
	}
	end, err := time.Parse(time.RFC3339, *until)
	if err != nil || !end.After(now) {
		return 0, false
	}
	return end.Sub(now), true
}

// backoff retries a failing control plane after one second at first and never later than after ten.
func backoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, 10*time.Second)
}
