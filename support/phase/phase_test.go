// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
)

type trace struct{ ran []string }

func step(name string, critical bool, after time.Duration, err error) Phase[*trace] {
	return Phase[*trace]{Name: name, Critical: critical, Run: func(_ context.Context, t *trace) (ctrl.Result, error) {
		t.ran = append(t.ran, name)
		return ctrl.Result{RequeueAfter: after}, err
	}}
}

func whilePaused(p Phase[*trace]) Phase[*trace] {
	p.WhilePaused = true
	return p
}

func TestRun(t *testing.T) {
	broken := errors.New("broken")
	waiting := fmt.Errorf("nothing to do yet: %w", ErrStop)
	for _, tc := range []struct {
		name    string
		phases  []Phase[*trace]
		paused  bool
		ran     []string
		through bool
		after   time.Duration
		message string
	}{
		{
			name:   "When all phases succeed, it should run them in order and return the shortest delay",
			phases: []Phase[*trace]{step("a", true, 0, nil), step("b", false, time.Minute, nil), step("c", false, time.Second, nil)},
			ran:    []string{"a", "b", "c"}, through: true,
			after: time.Second,
		},
		{
			name:   "When the object is paused, it should run only the phases that run while paused",
			phases: []Phase[*trace]{step("a", true, 0, nil), whilePaused(step("b", false, 0, nil)), step("c", false, 0, nil)},
			paused: true,
			ran:    []string{"b"}, through: true,
		},
		{
			name:    "When a phase that is not critical fails, it should run the rest and name the phase in the error",
			phases:  []Phase[*trace]{step("a", false, 0, broken), step("b", false, 0, broken), step("c", false, 0, nil)},
			ran:     []string{"a", "b", "c"},
			message: "a: broken\nb: broken",
		},
		{
			name:    "When a critical phase fails, it should skip the phases after it",
			phases:  []Phase[*trace]{step("a", true, 0, broken), step("b", false, 0, nil)},
			ran:     []string{"a"},
			message: "a: broken",
		},
		{
			name:   "When a phase stops the reconcile, it should skip the phases after it and return no error",
			phases: []Phase[*trace]{step("a", false, time.Minute, waiting), step("b", false, 0, nil)},
			ran:    []string{"a"},
			after:  time.Minute,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			got := &trace{}
			result, through, err := run(t.Context(), got, tc.phases, tc.paused)
			g.Expect(got.ran).To(Equal(tc.ran))
			g.Expect(through).To(Equal(tc.through))
			g.Expect(result.RequeueAfter).To(Equal(tc.after))
			if tc.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(tc.message))
			g.Expect(err).To(MatchError(broken))
		})
	}
}
