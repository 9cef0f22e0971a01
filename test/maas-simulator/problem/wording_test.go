// SPDX-License-Identifier: Apache-2.0

package problem_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// TestKinds verifies the media types, by which clients distinguish the errors of a form from a plain message.
func TestKinds(t *testing.T) {
	g := NewWithT(t)
	g.Expect(problem.Text(400, "a").Type).To(Equal("text/plain; charset=utf-8"))
	g.Expect(problem.NotFound("Zone").Type).To(Equal("text/plain; charset=utf-8"))
	g.Expect(problem.HTML(401, "a").Type).To(Equal("text/html; charset=utf-8"))
	var p *problem.Problem
	g.Expect(errors.As(problem.Field("zone", "no %s", "zone"), &p)).To(BeTrue())
	g.Expect(p).To(And(HaveField("Type", "application/json"), HaveField("Status", 400), HaveField("Body", `{"zone": ["no zone"]}`)))
	g.Expect(p.Error()).To(Equal(`400: {"zone": ["no zone"]}`))
}

// TestBlanks verifies that spaces are added between values and never inside a quoted one.
func TestBlanks(t *testing.T) {
	for message, want := range map[string]string{
		"a:b,c":      `{"f": ["a:b,c"]}`,
		`"`:          `{"f": ["\""]}`,
		`":,`:        `{"f": ["\":,"]}`,
		`\`:          `{"f": ["\\"]}`,
		`\",:`:       `{"f": ["\\\",:"]}`,
		`\\":"`:      `{"f": ["\\\\\":\""]}`,
		"é, <b>: &":  `{"f": ["é, <b>: &"]}`,
		"line\nnext": `{"f": ["line\nnext"]}`,
		"":           `{"f": [""]}`,
	} {
		var p *problem.Problem
		g := NewWithT(t)
		g.Expect(errors.As(problem.Field("f", "%s", message), &p)).To(BeTrue())
		g.Expect(p.Body).To(Equal(want))
	}
}
