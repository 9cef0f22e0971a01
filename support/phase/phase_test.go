package phase_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/support/phase"
)

type trace struct{ ran []string }

func step(name string, critical bool, after time.Duration, err error) phase.Phase[*trace] {
	return phase.Phase[*trace]{Name: name, Critical: critical, Run: func(_ context.Context, t *trace) (ctrl.Result, error) {
		t.ran = append(t.ran, name)
		return ctrl.Result{RequeueAfter: after}, err
	}}
}

func TestRun(t *testing.T) {
	broken := errors.New("broken")
	waiting := fmt.Errorf("nothing to do yet: %w", phase.ErrStop)
	for _, tc := range []struct {
		name    string
		phases  []phase.Phase[*trace]
		ran     []string
		after   time.Duration
		message string
	}{
		{
			name:   "When all phases succeed, it should run them in order and come back at the soonest time",
			phases: []phase.Phase[*trace]{step("a", true, 0, nil), step("b", false, time.Minute, nil), step("c", false, time.Second, nil)},
			ran:    []string{"a", "b", "c"},
			after:  time.Second,
		},
		{
			name:    "When a phase that is not critical fails, it should run the rest and report the failure with its name",
			phases:  []phase.Phase[*trace]{step("a", false, 0, broken), step("b", false, 0, broken), step("c", false, 0, nil)},
			ran:     []string{"a", "b", "c"},
			message: "a: broken\nb: broken",
		},
		{
			name:    "When a critical phase fails, it should leave out what follows",
			phases:  []phase.Phase[*trace]{step("a", true, 0, broken), step("b", false, 0, nil)},
			ran:     []string{"a"},
			message: "a: broken",
		},
		{
			name:   "When a phase stops the pass, it should leave out what follows and not call that a failure",
			phases: []phase.Phase[*trace]{step("a", false, time.Minute, waiting), step("b", false, 0, nil)},
			ran:    []string{"a"},
			after:  time.Minute,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			got := &trace{}
			result, err := phase.Run(t.Context(), got, tc.phases)
			g.Expect(got.ran).To(Equal(tc.ran))
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
