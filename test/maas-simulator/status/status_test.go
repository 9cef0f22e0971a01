// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// legal is MAAS's table of transitions, written independently from its documentation. Every pair that is missing is not
// allowed.
const legal = `
New: Commissioning, Testing, Missing, Ready, Retired, Broken, Entering rescue mode
Commissioning: Failed commissioning, Ready, Retired, Missing, New, Broken, Testing
Failed commissioning: Commissioning, Missing, Retired, Broken, Entering rescue mode, Testing
Ready: Allocated, Reserved, Commissioning, Testing, Retired, Missing, Broken, Entering rescue mode
Reserved: Ready, Allocated, Retired, Missing, Broken, Disk erasing, Releasing, Entering rescue mode, Testing
Allocated: Ready, Deploying, Releasing, Disk erasing, Broken, Retired, Missing, Entering rescue mode, Testing
Deploying: Deployed, Failed deployment, Allocated, Ready, Releasing, Disk erasing, Broken, Missing
Deployed: Allocated, Ready, Releasing, Disk erasing, Broken, Missing, Entering rescue mode, Testing
Failed deployment: Allocated, Ready, Releasing, Disk erasing, Broken, Missing, Entering rescue mode, Testing
Releasing: Ready, New, Allocated, Reserved, Deployed, Failed deployment, Broken, Missing, Failed disk erasing, Releasing failed
Releasing failed: Releasing, Disk erasing, Ready, Broken, Testing
Disk erasing: Failed disk erasing, Ready, Releasing, Broken
Failed disk erasing: Disk erasing, Releasing, Allocated, Ready, Broken, Entering rescue mode, Testing
Broken: Commissioning, Ready, Deployed, Releasing, Disk erasing, Entering rescue mode, Testing
Missing: New, Ready, Allocated, Commissioning, Broken, Entering rescue mode, Testing
Retired: New, Ready, Missing, Broken, Entering rescue mode, Testing
Failed testing: Commissioning, Ready, Deployed, Broken, Missing, Entering rescue mode, Testing
Entering rescue mode: Rescue mode, Failed to enter rescue mode, Exiting rescue mode, Ready, Deployed, Broken
Rescue mode: Exiting rescue mode, Broken, Testing
`

func TestMove(t *testing.T) {
	allowed := map[string]map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(legal), "\n") {
		from, to, _ := strings.Cut(line, ": ")
		allowed[from] = map[string]bool{from: true}
		for _, name := range strings.Split(to, ", ") {
			allowed[from][name] = true
		}
	}
	for _, from := range status.All() {
		moves, documented := allowed[from.String()]
		if !documented {
			continue // These return to a previous status.
		}
		for _, to := range status.All() {
			t.Run(from.String()+" to "+to.String(), func(t *testing.T) {
				g := NewWithT(t)
				g.Expect(status.CanMove(from, to)).To(Equal(moves[to.String()]))
				if moves[to.String()] {
					g.Expect(status.Move(from, to)).To(Succeed())
				} else {
					g.Expect(status.Move(from, to)).To(MatchError("Invalid transition: " + from.String() + " -> " + to.String() + "."))
				}
			})
		}
	}
}

func TestStatuses(t *testing.T) {
	g := NewWithT(t)
	g.Expect(status.All()).To(HaveLen(23))
	words := map[string]bool{}
	for _, s := range status.All() {
		found, ok := status.ByWord(wordOf(s))
		g.Expect(ok).To(BeTrue(), "a filter word for %s", s)
		g.Expect(found).To(Equal(s))
		g.Expect(s.Valid()).To(BeTrue())
		g.Expect(s.Simple()).NotTo(BeEmpty())
		words[wordOf(s)] = true
	}
	g.Expect(words).To(HaveLen(23))
	g.Expect(status.Status(23).Valid()).To(BeFalse())
	g.Expect(status.Status(99).String()).To(Equal("Unknown (99)"))
	_, ok := status.ByWord("4")
	g.Expect(ok).To(BeFalse(), "numbers are no words")
}

// wordOf derives the filter word from the name, except for names with another word order.
func wordOf(s status.Status) string {
	odd := map[status.Status]string{
		status.FailedReleasing: "failed_releasing", status.FailedEnteringRescueMode: "failed_entering_rescue_mode",
		status.FailedExitingRescueMode: "failed_exiting_rescue_mode",
	}
	if word := odd[s]; word != "" {
		return word
	}
	return strings.ReplaceAll(strings.ToLower(s.String()), " ", "_")
}

func TestFailed(t *testing.T) {
	g := NewWithT(t)
	for from, to := range map[status.Status]status.Status{1: 2, 9: 11, 12: 13, 14: 15, 17: 18, 19: 20, 21: 22} {
		failed, ok := from.Failed()
		g.Expect(ok).To(BeTrue())
		g.Expect(failed).To(Equal(to), "after %s", from)
		g.Expect(status.CanMove(from, to)).To(BeTrue())
	}
	_, ok := status.Ready.Failed()
	g.Expect(ok).To(BeFalse(), "an idle machine cannot fail")
}

func TestAborted(t *testing.T) {
	for _, s := range status.All() {
		t.Run(s.String(), func(t *testing.T) {
			g := NewWithT(t)
			to, ok := s.Aborted(status.Allocated)
			want := map[status.Status]status.Status{
				status.Commissioning: status.New, status.Deploying: status.Allocated, status.DiskErasing: status.FailedDiskErasing,
				status.Testing: status.Allocated,
			}
			expected, abortable := want[s]
			g.Expect(ok).To(Equal(abortable))
			g.Expect(to).To(Equal(expected))
		})
	}
}
