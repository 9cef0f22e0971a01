// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// retryAfter is the delay after which a reconcile that saw an outdated object is repeated.
const retryAfter = time.Second

// settle ends a reconcile whose phases returned result and failure. report, if set, writes the status from the
// remaining failure. Failures that only mean that an object was outdated are not reported; they requeue the object
// after retryAfter.
func settle(result ctrl.Result, failure error, report func(failure error) error) (ctrl.Result, error) {
	failure, old := withoutOutdated(failure)
	if report != nil {
		var alsoOld bool
		failure, alsoOld = withoutOutdated(errors.Join(failure, report(failure)))
		old = old || alsoOld
	}
	if failure != nil {
		return ctrl.Result{}, failure // The rate limiter decides when to requeue the object.
	}
	if old {
		result = Sooner(result, ctrl.Result{RequeueAfter: retryAfter})
	}
	return result, nil
}

// withoutOutdated returns nil and true if err consists only of failures of outdated objects. Otherwise it returns err
// and false.
func withoutOutdated(err error) (rest error, dropped bool) {
	switch {
	case err == nil:
		return nil, false
	case outdated(err):
		return nil, true
	}
	return err, false
}

// Outdated reports whether a failure only means that the reconcile saw an outdated object: the next reconcile follows
// soon, and the failure is not reported.
func Outdated(err error) bool { return err != nil && outdated(err) }

// outdated reports whether every joined error is a conflict, or an "already exists" error of an object that the cache
// did not show.
func outdated(err error) bool {
	switch e := err.(type) { //nolint:errorlint // the tree of errors is walked by hand
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !outdated(part) {
				return false
			}
		}
		return true
	case apierrors.APIStatus:
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
	case interface{ Unwrap() error }:
		return e.Unwrap() != nil && outdated(e.Unwrap())
	}
	return false
}
