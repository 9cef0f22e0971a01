// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/skew"
)

// installArgs are the arguments of the installations that are killed.
var installArgs = []string{"install", "--hypershift-image", "registry.example/hypershift:1"}

// TestHalfInstall kills installations after their writes, and runs them again.
func TestHalfInstall(t *testing.T) {
	undisturbed := newSite(t)
	undisturbed.open(-1)
	o := hypershift(t.Context(), "", append(installArgs, "--kubeconfig", undisturbed.gated)...)
	undisturbed.Expect(o.code).To(BeZero(), o.stderr)
	undisturbed.Expect(o.stderr).To(MatchRegexp(
		`version ` + skew.Version + ` is installed: \d+ objects created, 0 changed, 0 unchanged\n$`))
	want, writes := undisturbed.state(), undisturbed.passed()
	undisturbed.Expect(len(want)).To(BeNumerically(">", 50))

	t.Run("an installation that was killed several times is completed by the last run", func(t *testing.T) {
		s := newSite(t)
		for _, n := range samples(writes - 1) {
			s.killed(n)
		}
		s.succeeds("", installArgs...)
		s.Expect(s.state()).To(Equal(want))
	})
	for _, n := range samples(writes - 1) {
		t.Run(fmt.Sprintf("an upgrade that was killed after write %d is completed by the next run", n), func(t *testing.T) {
			s := undisturbed.in(t)
			s.installReleased()
			s.killed(n)
			o := s.succeeds("", installArgs...)
			s.Expect(o.stderr).To(MatchRegexp(`is installed in place of [0-9.]+: \d+ objects created, \d+ changed`))
			s.Expect(s.state()).To(Equal(want))
		})
	}
}

// samples returns the numbers of the writes after which to kill a command with count more of them. These are all of
// them, or with -short the first, the last and one between.
func samples(count int) []int {
	step := 1
	if testing.Short() {
		step = count / 2
	}
	var all []int
	for n := 1; n < count; n += step {
		all = append(all, n)
	}
	return append(all, count)
}

// killed runs an installation that ends after a number of writes.
func (s *site) killed(writes int) {
	s.t.Helper()
	var o outcome
	// A busy API server may fail an earlier request. This also leaves half an installation.
	s.Eventually(func() int {
		s.open(writes)
		o = hypershift(s.t.Context(), "", append(installArgs, "--kubeconfig", s.gated)...)
		return s.passed()
	}).Should(Equal(writes), func() string { return o.stderr })
	s.Expect(o.code).To(Equal(1))
	s.Expect(o.stderr).To(ContainSubstring("run the command again to complete the installation"))
}

// TestWayBack applies the objects of the first release over those of this version.
func TestWayBack(t *testing.T) {
	s := newSite(t)
	s.succeeds("", installArgs...)
	want := s.state()
	const says = "going back to an older minor version is not possible"
	for _, obj := range s.releasedObjects() {
		if !slices.Contains(crds.Names(crds.HyperShift), obj.GetName()) && obj.GetKind() != "Deployment" {
			continue
		}
		t.Run(obj.GetName()+" of "+skew.First+" is refused", func(t *testing.T) {
			g := NewWithT(t)
			// The API server takes a moment to load the policy.
			g.Eventually(func() error { return s.applyReleased(obj, client.DryRunAll) }).
				Should(MatchError(ContainSubstring(says)))
			g.Expect(s.applyReleased(obj)).To(MatchError(And(ContainSubstring(says),
				ContainSubstring("restore the backups of the hosted clusters"))))
		})
	}
	s.Expect(s.state()).To(Equal(want), "nothing is changed")

	t.Run("this version and a newer one can be installed", func(t *testing.T) {
		g := NewWithT(t)
		o := s.succeeds("", installArgs...)
		g.Expect(o.stderr).To(ContainSubstring("in place of " + skew.Version + ": 0 objects created, 0 changed"))
		operator := &appsv1.Deployment{}
		g.Expect(s.gets(operator, "hypershift", "operator")).To(Succeed())
		operator.Annotations[skew.Annotation] = "0.99.0"
		g.Expect(s.client.Update(t.Context(), operator)).To(Succeed())
	})
	t.Run("this version does not downgrade a newer one", func(t *testing.T) {
		g := NewWithT(t)
		before := s.state()
		for _, more := range []string{"--dry-run", "--wait-until-crds-established"} {
			o := s.types("", append(installArgs, more)...)
			g.Expect(o.code).To(Equal(1))
			g.Expect(o.stderr).To(ContainSubstring("version 0.99.0 is installed, and this is " + skew.Version))
		}
		g.Expect(s.state()).To(Equal(before))
	})
}
