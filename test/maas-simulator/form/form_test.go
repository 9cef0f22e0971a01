// SPDX-License-Identifier: Apache-2.0

package form_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/form"
)

func TestValues(t *testing.T) {
	g := NewWithT(t)
	v, err := form.Parse("b=1&a=2&b=3&empty=&flag&x=a%20b%26")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Keys()).To(Equal([]string{"b", "a", "empty", "flag", "x"}), "in the order of the request")
	g.Expect(v.Get("b")).To(Equal("3"), "the last one counts")
	g.Expect(v.All("b")).To(Equal([]string{"1", "3"}))
	g.Expect(v.Get("x")).To(Equal("a b&"))
	g.Expect(v.Has("empty")).To(BeTrue())
	g.Expect(v.Has("none")).To(BeFalse())
	g.Expect(v.Without("b", "x").Keys()).To(Equal([]string{"a", "empty", "flag"}))
	_, err = form.Parse("a=%zz")
	g.Expect(err).To(MatchError(ContainSubstring(`reading parameter "a"`)))
}

func TestParseBool(t *testing.T) {
	for word, want := range map[string][2]bool{
		"true": {true, true}, "True": {true, true}, "1": {true, true}, "on": {true, true}, "yes": {true, true}, "T": {true, true}, "y": {true, true},
		"false": {false, true}, "0": {false, true}, "off": {false, true}, "no": {false, true}, "": {false, true}, "banana": {false, false},
	} {
		on, ok := form.ParseBool(word)
		NewWithT(t).Expect([2]bool{on, ok}).To(Equal(want), word)
	}
}

func TestBody(t *testing.T) {
	g := NewWithT(t)
	r := httptest.NewRequest("POST", "/", strings.NewReader("a=1"))
	v, err := form.Body(r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Get("a")).To(Equal("1"), "a body without a media type is a form")
	r = httptest.NewRequest("PUT", "/", strings.NewReader("bytes"))
	r.Header.Set("Content-Type", "application/octet-stream")
	v, err = form.Body(r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v).To(BeEmpty())
	r.Header.Set("Content-Type", "application/json")
	_, err = form.Body(r)
	g.Expect(err).To(MatchError(form.ErrJSON))
	r.Body = nil
	r.Header.Del("Content-Type")
	v, err = form.Body(r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v).To(BeEmpty())
}
