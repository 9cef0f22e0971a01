// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCheck(t *testing.T) {
	t.Run("When a subtest needs an earlier one, it should name that subtest and no independent ones", func(t *testing.T) {
		g, out := NewWithT(t), &bytes.Buffer{}
		err := check(t.Context(), []string{"./testdata/chained"}, out)
		g.Expect(err).To(MatchError(And(
			ContainSubstring("TestDoor/it_is_open fails alone"), ContainSubstring("it is shut"),
			ContainSubstring("TestDoor/somebody_passes does not run alone"), Not(ContainSubstring("opens")))))
		g.Expect(out.String()).To(HaveSuffix("chained: 1 of 3 subtests pass alone\n"))
	})
	t.Run("When subtests are independent, it should count those without subtests of their own", func(t *testing.T) {
		g, out := NewWithT(t), &bytes.Buffer{}
		g.Expect(check(t.Context(), []string{"./testdata/free"}, out)).To(Succeed())
		g.Expect(out.String()).To(HaveSuffix("free: 1 of 1 subtests pass alone\n"))
	})
	t.Run("When no package is given, it should return the usage", func(t *testing.T) {
		NewWithT(t).Expect(check(t.Context(), nil, &bytes.Buffer{})).To(MatchError(ContainSubstring("no package is named")))
	})
	t.Run("When a package does not exist, it should return an error", func(t *testing.T) {
		NewWithT(t).Expect(check(t.Context(), []string{"./testdata/absent"}, &bytes.Buffer{})).To(MatchError(ContainSubstring("listing packages")))
	})
}
