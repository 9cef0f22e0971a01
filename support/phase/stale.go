// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// retryAfter is how soon a pass that saw an outdated object is repeated.
const retryAfter = time.Second

// settle ends a pass whose phases returned result and failure: report, if any, writes the status from what is left of the
// failure. Failures that only mean that something was outdated ask for another pass soon; nobody needs to hear of them.
func settle(result ctrl.Result, failure error, report func(failure error) error) (ctrl.Result, error) {
	failure, old := withoutOutdated(failure)
	if report != nil {
		var alsoOld bool
		failure, alsoOld = withoutOutdated(errors.Join(failure, report(failure)))
		old = old || alsoOld
	}
	if failure != nil {
		return ctrl.Result{}, failure // The rate limiter says when the object comes back.
	}
	if old {
		result = Sooner(result, ctrl.Result{RequeueAfter: retryAfter})
	}
	return result, nil
}

// withoutOutdated returns what is left of err without failures of outdated objects, and whether there were any.
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

// outdated tells whether all that err joins is a conflict, or an object that exists already although it was not seen.
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
