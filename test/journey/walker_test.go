// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestReach(t *testing.T) {
	never := Quick(func() (bool, string, error) { return false, "1 of 2", nil })
	t.Run("When the stage is reached, it should be in the timeline", func(t *testing.T) {
		g := NewWithT(t)
		w := NewWalker("", "", io.Discard)
		g.Expect(w.Reach(t.Context(), "ready", time.Minute, Quick(func() (bool, string, error) { return true, "", nil }))).To(Succeed())
		g.Expect(w.Timeline.stages).To(ConsistOf(HaveField("Name", "ready")))
	})
	t.Run("When the limit passes, the error should give the limit and the last state", func(t *testing.T) {
		g := NewWithT(t)
		err := NewWalker("", "", io.Discard).Reach(t.Context(), "ready", time.Millisecond, never)
		g.Expect(err).To(MatchError("ready: not reached in 1ms; last seen: 1 of 2"))
	})
	t.Run("When the user interrupts, the error should not blame the limit", func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := NewWalker("", "", io.Discard).Reach(ctx, "ready", time.Minute, never)
		g.Expect(errors.Is(err, context.Canceled)).To(BeTrue())
		g.Expect(err).NotTo(MatchError(ContainSubstring("not reached")))
	})
}

func TestComplaints(t *testing.T) {
	g := NewWithT(t)
	o := object{Kind: "NodePool"}
	o.Metadata.Namespace, o.Metadata.Name = "clusters", "demo"
	o.Status.Conditions = []conditionView{
		{"Ready", "False", "NoCapacity", "no machine fits"}, {"ValidReleaseImage", "True", "AsExpected", "fine"},
		{"Degraded", "False", "AsExpected", "fine"}, {"UpdatingVersion", "True", "AsExpected", "to 1.36.3"},
	}
	got := o.complaints()
	g.Expect(got).To(HavePrefix("NodePool clusters/demo\n"))
	g.Expect(got).To(ContainSubstring("Ready=False NoCapacity: no machine fits"))
	g.Expect(got).To(ContainSubstring("UpdatingVersion=True"))
	g.Expect(strings.Contains(got, "fine")).To(BeFalse(), "what is as it should be is not said")
}

func TestAll(t *testing.T) {
	g := NewWithT(t)
	check := func(done bool, progress string, err error) Check {
		return Quick(func() (bool, string, error) { return done, progress, err })
	}
	done, progress, err := All(check(true, "a", nil), check(true, "", nil))(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(done).To(BeTrue())
	g.Expect(progress).To(Equal("a"))
	done, progress, err = All(check(false, "a", nil), check(true, "b", nil))(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(done).To(BeFalse())
	g.Expect(progress).To(Equal("a; b"))
	_, _, err = All(check(true, "", nil), check(true, "", errors.New("away")))(t.Context())
	g.Expect(err).To(MatchError("away"))
}
