// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dghubble/oauth1"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// plaintext signs with PLAINTEXT, as MAAS's own clients do.
type plaintext struct{}

func (plaintext) Name() string                          { return "PLAINTEXT" }
func (plaintext) Sign(secret, _ string) (string, error) { return "&" + secret, nil }

// forged is a transport that changes requests after they are signed.
type forged func(*http.Request) *http.Request

// RoundTrip sends the changed request.
func (f forged) RoundTrip(r *http.Request) (*http.Response, error) {
	return http.DefaultTransport.RoundTrip(f(r))
}

// signing returns a client that signs with a generic OAuth library. forge changes the signed requests.
func signing(t *testing.T, s *simulator.Simulator, user string, signer oauth1.Signer, forge forged) *http.Client {
	t.Helper()
	key := strings.Split(s.Key(user), ":")
	config := oauth1.NewConfig(key[0], "")
	config.Signer = signer
	ctx := context.WithValue(t.Context(), oauth1.HTTPClient, &http.Client{Transport: forge})
	return config.Client(ctx, oauth1.NewToken(key[1], key[2]))
}

func urlencoded(pairs ...string) func() (io.Reader, string) {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	return func() (io.Reader, string) {
		return strings.NewReader(values.Encode()), "application/x-www-form-urlencoded"
	}
}

func parts(pairs ...string) func() (io.Reader, string) {
	return func() (io.Reader, string) {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		for i := 0; i < len(pairs); i += 2 {
			// Writing to a buffer cannot fail.
			_ = w.WriteField(pairs[i], pairs[i+1])
		}
		_ = w.Close()
		return &body, w.FormDataContentType()
	}
}

func nothing() (io.Reader, string) { return nil, "" }

// TestForeignSigners verifies the signatures of a generic OAuth library over forms.
func TestForeignSigners(t *testing.T) {
	sent := func(r *http.Request) *http.Request { return r }
	another := func(r *http.Request) *http.Request {
		r = r.Clone(r.Context())
		body := "name=two&agent_name=theirs"
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		return r
	}
	const allocate = "POST machines/?op=allocate"
	tests := map[string]struct {
		user, request string
		body          func() (io.Reader, string)
		forge         forged
		hmac, plain   int
	}{
		"there is no body":                {"alice", "GET machines/?hostname=one&status=ready", nothing, sent, 200, 200},
		"the form is URL-encoded":         {"alice", allocate, urlencoded("name", "one", "agent_name", "mine"), sent, 200, 200},
		"the operation is in the form":    {"alice", "POST machines/", urlencoded("op", "allocate", "name", "one"), sent, 200, 200},
		"the values need escaping":        {"alice", allocate, urlencoded("name", "one", "comment", "a b+c&d=e~f*g(ü)%20"), sent, 200, 200},
		"a name is a prefix of another":   {"alice", allocate, urlencoded("mem", "1", "comment", "x", "comment-2", "y"), sent, 400, 400},
		"the request is an update":        {"admin", "PUT machines/aaaaa1/", urlencoded("description", "a b"), sent, 200, 200},
		"the body is multipart":           {"alice", allocate, parts("name", "one", "comment", "a b"), sent, 200, 200},
		"the form was changed in transit": {"alice", allocate, urlencoded("name", "one"), another, 401, 200},
	}
	for name, test := range tests {
		for _, signer := range []oauth1.Signer{&oauth1.HMACSigner{}, plaintext{}} {
			t.Run("When "+name+", signatures should be verified with "+signer.Name(), func(t *testing.T) {
				g := NewWithT(t)
				s, err := simulator.New(simulator.Options{Seed: []byte(simtest.Rack)})
				g.Expect(err).NotTo(HaveOccurred())
				body, media := test.body()
				method, path, _ := strings.Cut(test.request, " ")
				request, err := http.NewRequestWithContext(t.Context(), method, simtest.Serve(t, s)+"/api/2.0/"+path, body)
				g.Expect(err).NotTo(HaveOccurred())
				request.Header.Set("Content-Type", media)
				answer, err := signing(t, s, test.user, signer, test.forge).Do(request)
				g.Expect(err).NotTo(HaveOccurred())
				defer answer.Body.Close()
				said, err := io.ReadAll(answer.Body)
				g.Expect(err).NotTo(HaveOccurred())
				want := test.hmac
				if signer.Name() == "PLAINTEXT" {
					want = test.plain
				}
				g.Expect(answer.StatusCode).To(Equal(want), "%s", said)
			})
		}
	}
}
