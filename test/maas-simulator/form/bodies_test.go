// SPDX-License-Identifier: Apache-2.0

package form_test

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/form"
)

// failing is a body that fails after its content, as if the sender had disconnected.
type failing struct{ io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New("connection reset by peer")
	}
	return n, err
}

const multipart = "multipart/form-data; boundary=x"

// part returns one parameter of a multipart body.
func part(name, value string) string {
	return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
}

func TestBodies(t *testing.T) {
	tests := map[string]struct {
		media string
		body  io.Reader
		want  form.Values
		says  string
	}{
		"a URL-encoded form": {"application/x-www-form-urlencoded; charset=utf-8", strings.NewReader("a=1&b=%26&a=2"),
			form.Values{{Key: "a", Value: "1"}, {Key: "b", Value: "&"}, {Key: "a", Value: "2"}}, ""},
		"a multipart form": {multipart, strings.NewReader(part("a", "1") + part("b", "x\r\ny") + part("a", "") + "--x--\r\n"),
			form.Values{{Key: "a", Value: "1"}, {Key: "b", Value: "x\r\ny"}, {Key: "a", Value: ""}}, ""},
		"a multipart form without parts":      {multipart, strings.NewReader("--x--\r\n"), nil, ""},
		"a multipart form without an end":     {multipart, strings.NewReader(part("a", "1")), nil, `reading multipart parameter "a"`},
		"a multipart form without a boundary": {"multipart/form-data", strings.NewReader(part("a", "1")), nil, "reading a multipart body"},
		"a part that is cut off":              {multipart, failing{strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nhal")}, nil, `reading multipart parameter "a"`},
		"a form that is cut off":              {"application/x-www-form-urlencoded", failing{strings.NewReader("a=1&b")}, nil, "reading the body: connection reset by peer"},
		"an invalid media type":               {"a/b; c", strings.NewReader("a=1"), nil, "reading the media type"},
		"an invalid escape":                   {"application/x-www-form-urlencoded", strings.NewReader("a=1&b=%g"), nil, `reading parameter "b"`},
		"an invalid escape in a name":         {"application/x-www-form-urlencoded", strings.NewReader("%g=1"), nil, `reading parameter "%g"`},
		"JSON":                                {"application/json", strings.NewReader("{}"), nil, form.ErrJSON.Error()},
	}
	for name, test := range tests {
		t.Run("When a body is "+name+", it should be parsed or rejected", func(t *testing.T) {
			g := NewWithT(t)
			r := httptest.NewRequest("POST", "/", test.body)
			r.Header.Set("Content-Type", test.media)
			got, err := form.Body(r)
			if test.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestURLEncoded(t *testing.T) {
	for media, want := range map[string]bool{
		"application/x-www-form-urlencoded": true, "Application/X-WWW-Form-Urlencoded; charset=utf-8": true, multipart: false, "": false, ";": false,
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Content-Type", media)
		NewWithT(t).Expect(form.URLEncoded(r)).To(Equal(want), media)
	}
}

func TestWordsForNo(t *testing.T) {
	for _, word := range []string{"false", "FALSE", "0", "off", "no", "f", "n", "N"} {
		on, ok := form.ParseBool(word)
		NewWithT(t).Expect([2]bool{on, ok}).To(Equal([2]bool{false, true}), word)
	}
	for _, word := range []string{"2", "tru", "nope", " true", "-1"} {
		_, ok := form.ParseBool(word)
		NewWithT(t).Expect(ok).To(BeFalse(), word)
	}
	v := form.Values{{Key: "a", Value: "yes"}, {Key: "a", Value: "banana"}}
	NewWithT(t).Expect(v.Bool("a")).To(BeFalse(), "the last one counts")
	NewWithT(t).Expect(v.Bool("b")).To(BeFalse())
}
