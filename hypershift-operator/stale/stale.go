// Package stale tells failures that only mean that a pass worked on an old state from real ones. The next pass, a moment
// later, has the new state; nobody needs to hear of it.
package stale

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/support/phase"
)

// retryAfter is how soon a pass on an old state is repeated.
const retryAfter = time.Second

// Settle ends a pass whose phases returned result and failure: report writes the status from what is left of the failure.
// Failures of old states only ask for another pass soon.
func Settle(result ctrl.Result, failure error, report func(failure error) error) (ctrl.Result, error) {
	failure, old := Drop(failure)
	rest, alsoOld := Drop(errors.Join(failure, report(failure)))
	if old || alsoOld {
		result = phase.Sooner(result, ctrl.Result{RequeueAfter: retryAfter})
	}
	return result, rest
}

// Drop returns what is left of err without failures of old states, and whether there were any.
func Drop(err error) (rest error, dropped bool) {
	switch {
	case err == nil:
		return nil, false
	case old(err):
		return nil, true
	}
	return err, false
}

// old tells whether all that err joins is a conflict, or an object that exists already although it was not seen.
func old(err error) bool {
	switch e := err.(type) { //nolint:errorlint // the tree of errors is walked by hand
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !old(part) {
				return false
			}
		}
		return true
	case apierrors.APIStatus:
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
	case interface{ Unwrap() error }:
		return e.Unwrap() != nil && old(e.Unwrap())
	}
	return false
}
