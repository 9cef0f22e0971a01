// SPDX-License-Identifier: Apache-2.0

package problem_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

func TestFields(t *testing.T) {
	g := NewWithT(t)
	f := problem.Fields{}
	g.Expect(f.Problem()).To(Succeed())
	f.Add("b", `say "x:y,z" \ <&>`)
	f.Add("a", "%d%%", 1)
	f.Add("a", "a plain text")
	var p *problem.Problem
	g.Expect(errors.As(f.Problem(), &p)).To(BeTrue())
	g.Expect(p.Status).To(Equal(400))
	g.Expect(p.Body).To(Equal(`{"a": ["1%", "a plain text"], "b": ["say \"x:y,z\" \\ <&>"]}`), "blanks as the server writes them, none within texts")
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		p     *problem.Problem
		code  int
		body  string
		retry string
	}{
		{problem.NotFound("Machine"), 404, "No Machine matches the given query.", ""},
		{problem.Forbidden(), 403, "", ""},
		{problem.AdminOnly(), 403, "This method is reserved for admin users.", ""},
		{problem.Conflict("%s is busy", "x"), 409, "x is busy", ""},
		{problem.Unavailable("no rack"), 503, "no rack", "10"},
		{problem.HTML(401, "no"), 401, "no", ""},
	} {
		g := NewWithT(t)
		g.Expect(test.p.Status).To(Equal(test.code))
		g.Expect(test.p.Body).To(Equal(test.body))
		g.Expect(test.p.Header.Get("Retry-After")).To(Equal(test.retry))
		g.Expect(test.p).To(MatchError(ContainSubstring(test.body)))
	}
}
