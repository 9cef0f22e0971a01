// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/phase"
)

func TestStep(t *testing.T) {
	for name, tc := range map[string]struct {
		waitsFor string
		err      error
		stops    bool
		again    time.Duration
		says     string
	}{
		"When nothing remains, the next step should follow":                     {"", nil, false, 0, ""},
		"When an object remains, it should requeue soon":                        {"a pod", nil, true, 2 * time.Second, "a pod"},
		"When the step fails, it should return an error that reports the retry": {"a pod", errNotNow, false, 0, "Deleting the x failed and is tried again: not now"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), withScope()
			result, err := step("x", func(_ context.Context, got *cluster.Scope) (string, error) {
				g.Expect(got).To(BeIdenticalTo(s.Scope))
				return tc.waitsFor, tc.err
			}).Run(t.Context(), s)
			g.Expect(errors.Is(err, phase.ErrStop)).To(Equal(tc.stops))
			g.Expect(errors.Is(err, errNotNow)).To(Equal(tc.err != nil))
			g.Expect(err == nil).To(Equal(tc.says == ""))
			g.Expect(result.RequeueAfter).To(Equal(tc.again))
			g.Expect(s.deletion).To(Equal(tc.says))
		})
	}
}

// TestStepMeetsAnotherWriter checks that an outdated object is not reported as a failure.
func TestStepMeetsAnotherWriter(t *testing.T) {
	g, s := NewWithT(t), withScope()
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "hostedcontrolplanes"}, "demo", errNotNow)
	_, err := step("hosted control plane", func(context.Context, *cluster.Scope) (string, error) {
		return "", fmt.Errorf("writing: %w", conflict)
	}).Run(t.Context(), s)
	g.Expect(apierrors.IsConflict(err)).To(BeTrue())
	g.Expect(s.deletion).To(Equal("Deleting the hosted control plane"))
}
