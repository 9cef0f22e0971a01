// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestSimple verifies the class of each status.
func TestSimple(t *testing.T) {
	called := func(s status.Status) string {
		name := strings.ToLower(s.String())
		switch {
		case strings.Contains(name, "fail"):
			return "failed"
		case strings.Contains(name, "rescue"):
			return "rescue"
		case s == status.Deploying:
			return "deployed"
		case s == status.DiskErasing:
			return "releasing"
		case s.In(status.Missing, status.Reserved, status.Retired):
			return "other"
		}
		return name
	}
	for _, s := range status.All() {
		NewWithT(t).Expect(s.Simple()).To(Equal(called(s)), s.String())
	}
}

// TestWaysBack verifies that a node can return from a test or a rescue to its previous status, and that every operation
// can fail or break.
func TestWaysBack(t *testing.T) {
	for _, s := range status.All() {
		t.Run(s.String(), func(t *testing.T) {
			g := NewWithT(t)
			// Tests during commissioning end the commissioning.
			if status.CanMove(s, status.Testing) && s != status.Commissioning {
				g.Expect(status.CanMove(status.Testing, s)).To(BeTrue(), "after a test")
			}
			// A node does not return to a failed entry or exit of rescue mode.
			if status.CanMove(s, status.EnteringRescueMode) && !s.In(status.EnteringRescueMode, status.FailedEnteringRescueMode, status.FailedExitingRescueMode) {
				g.Expect(status.CanMove(status.ExitingRescueMode, s)).To(BeTrue(), "after a rescue")
			}
			if failed, moving := s.Failed(); moving {
				g.Expect(status.CanMove(s, failed)).To(BeTrue())
				g.Expect(status.CanMove(s, status.Broken)).To(BeTrue())
				g.Expect(failed.Simple()).To(Equal("failed"))
				_, still := failed.Failed()
				g.Expect(still).To(BeFalse(), "what has failed does nothing that could")
			}
			if to, abortable := s.Aborted(status.Ready); abortable {
				g.Expect(status.CanMove(s, to)).To(BeTrue(), "after an abort")
			}
			if s.Releasable() {
				g.Expect(status.CanMove(s, status.Releasing)).To(BeTrue())
				g.Expect(status.CanMove(s, status.DiskErasing)).To(BeTrue(), "before a release")
			}
		})
	}
	for _, from := range []status.Status{status.FailedEnteringRescueMode, status.FailedExitingRescueMode} {
		g := NewWithT(t)
		for _, to := range []status.Status{status.EnteringRescueMode, status.ExitingRescueMode, status.Broken, status.Testing} {
			g.Expect(status.CanMove(from, to)).To(BeTrue(), "%s to %s", from, to)
		}
		g.Expect(status.CanMove(from, status.Ready)).To(BeFalse())
	}
	NewWithT(t).Expect(status.CanMove(status.Testing, status.FailedTesting)).To(BeTrue())
	NewWithT(t).Expect(status.CanMove(status.Testing, status.Deploying)).To(BeFalse())
	NewWithT(t).Expect(status.CanMove(status.ExitingRescueMode, status.Deploying)).To(BeFalse())
}
