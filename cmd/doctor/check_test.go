// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/cmd/doctor"
)

func TestRun(t *testing.T) {
	good := func(context.Context) doctor.Outcome {
		return doctor.Outcome{Status: doctor.OK, Message: "a name \x1b[31m\nof a tenant\x7f"}
	}
	results := doctor.Run(t.Context(), []doctor.Check{
		{Part: "p", Name: "hangs", Limit: time.Millisecond, Run: func(ctx context.Context) doctor.Outcome {
			<-ctx.Done()
			return doctor.Outcome{Status: doctor.Failed, Message: ctx.Err().Error()}
		}},
		{Part: "p", Name: "needs it", Needs: "p hangs", Run: good},
		{Part: "p", Name: "needs both", Needs: "p needs it", Run: good},
		{Part: "p", Name: "panics", Run: func(context.Context) doctor.Outcome { panic("nil map") }},
		{Part: "p", Name: "runs", Run: good},
	})
	t.Run("a check ends at its time limit", func(t *testing.T) {
		NewWithT(t).Expect(of(t, results, "p", "hangs").Message).To(Equal(context.DeadlineExceeded.Error()))
	})
	t.Run("checks that need a failed one are skipped, directly or not", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(of(t, results, "p", "needs it").Status).To(Equal(doctor.Skipped))
		g.Expect(of(t, results, "p", "needs it").Message).To(ContainSubstring(`"p hangs"`))
		g.Expect(of(t, results, "p", "needs both").Status).To(Equal(doctor.Skipped))
	})
	t.Run("a defect of a check is its finding, and others run", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(of(t, results, "p", "panics").Status).To(Equal(doctor.Failed))
		g.Expect(of(t, results, "p", "runs").Status).To(Equal(doctor.OK))
	})
	t.Run("text cannot control the terminal or begin a line", func(t *testing.T) {
		NewWithT(t).Expect(of(t, results, "p", "runs").Message).To(Equal(`a name \x1b[31m of a tenant\x7f`))
	})
}

func TestPreflight(t *testing.T) {
	g := NewWithT(t)
	var stderr strings.Builder
	warning := doctor.Result{Part: "maas", Check: "machines", Status: doctor.Warning, Message: "none fits",
		Remedy: "add one"}
	g.Expect(doctor.Preflight([]doctor.Result{warning, {Status: doctor.OK}, {Status: doctor.Skipped}},
		&stderr)).To(Succeed())
	g.Expect(stderr.String()).To(Equal("Warning: maas machines: none fits; add one\n"))
	failure := doctor.Result{Part: "maas", Check: "key", Status: doctor.Failed, Message: "it is wrong"}
	g.Expect(doctor.Preflight([]doctor.Result{failure}, &stderr)).To(MatchError(
		And(ContainSubstring("maas key: it is wrong"), ContainSubstring("--skip-preflight"))))
}
