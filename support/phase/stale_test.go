// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWithoutOutdated(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	conflict := fmt.Errorf("phase: %w", apierrors.NewConflict(secrets, "a", errors.New("changed")))
	exists := fmt.Errorf("phase: %w", apierrors.NewAlreadyExists(secrets, "a"))
	missing := apierrors.NewNotFound(secrets, "a")
	for _, tc := range []struct {
		name    string
		err     error
		dropped bool
	}{
		{"When there is no error, it should drop nothing", nil, false},
		{"When the error is a conflict, it should drop it", conflict, true},
		{"When the object exists already, it should drop the error", exists, true},
		{"When all joined errors are from outdated reads, it should drop them", errors.Join(conflict, exists), true},
		{"When one of the joined errors is real, it should keep all", errors.Join(conflict, missing), false},
		{"When it is another API error, it should keep it", missing, false},
		{"When it is not an API error, it should keep it", errors.New("disk full"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			rest, dropped := withoutOutdated(tc.err)
			g.Expect(dropped).To(Equal(tc.dropped))
			if tc.dropped || tc.err == nil {
				g.Expect(rest).To(BeNil())
			} else {
				g.Expect(rest).To(Equal(tc.err))
			}
		})
	}
}

func TestSettle(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "a", errors.New("changed"))
	broken := errors.New("disk full")
	for _, tc := range []struct {
		name             string
		requeue          time.Duration
		phases, report   error
		reported, err    error
		wantRequeueAfter time.Duration
	}{
		{"When there are no errors, it should keep the delay of the phases", time.Minute, nil, nil, nil, nil, time.Minute},
		{"When a phase read an outdated object, it should not report that and should retry soon", time.Minute, conflict, nil, nil, nil, retryAfter},
		{"When a phase fails, it should report and return the error", 0, broken, nil, broken, broken, 0},
		{"When only the report used an outdated object, it should retry soon", 0, nil, conflict, nil, nil, retryAfter},
		{"When both the phase and the report fail, it should return both errors", 0, broken, conflict, broken, errors.Join(broken, conflict), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var reported error
			result, err := settle(ctrl.Result{RequeueAfter: tc.requeue}, tc.phases, func(failure error) error {
				reported = failure
				return tc.report
			})
			if tc.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(tc.err.Error()))
			}
			if tc.reported == nil {
				g.Expect(reported).NotTo(HaveOccurred())
			} else {
				g.Expect(reported).To(MatchError(tc.reported))
			}
			g.Expect(result.RequeueAfter).To(Equal(tc.wantRequeueAfter))
		})
	}
}
