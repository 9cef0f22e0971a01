// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// attempts answers requests with one result after the other, and repeats the last one.
type attempts struct {
	results []func(*http.Request) (*http.Response, error)
	bodies  []string
}

func (a *attempts) RoundTrip(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body = string(text)
	}
	result := a.results[min(len(a.bodies), len(a.results)-1)]
	a.bodies = append(a.bodies, body)
	return result(req)
}

func status(code int, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		response := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("text"))}
		for _, header := range headers {
			response.Header.Set(header, "1")
		}
		return response, nil
	}
}

func TestRetrying(t *testing.T) {
	lost := func(*http.Request) (*http.Response, error) { return nil, io.EOF }
	refused := func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }
	type results = []func(*http.Request) (*http.Response, error)
	for name, tc := range map[string]struct {
		method, query string
		results       results
		attempts      int
		code          int
	}{
		"an error 500 is repeated":                              {"PATCH", "", results{status(500), status(200)}, 2, 200},
		"errors 502, 503, 504 and 429 are repeated":             {"PUT", "", results{status(502), status(503), status(504), status(429), status(200)}, 5, 200},
		"a read is repeated":                                    {"GET", "", results{status(500), status(200)}, 2, 200},
		"a lost connection is repeated":                         {"DELETE", "", results{lost, lost, status(200)}, 3, 200},
		"client-go repeats reads whose connection is lost":      {"GET", "", results{lost}, 1, 0},
		"client-go waits as Retry-After says":                   {"PATCH", "", results{status(429, "Retry-After")}, 1, 429},
		"other errors are final":                                {"PATCH", "", results{status(409)}, 1, 409},
		"another error of the network is final":                 {"PATCH", "", results{refused}, 1, 0},
		"the number of attempts is bounded":                     {"PATCH", "", results{status(503)}, 6, 503},
		"a create request that was not carried out is repeated": {"POST", "", results{status(503), status(429), status(201)}, 3, 201},
		"a create request that may have been is not":            {"POST", "", results{status(500)}, 1, 500},
		"a create request whose connection is lost is not":      {"POST", "", results{lost}, 1, 0},
		"a create request that only validates is":               {"POST", "?dryRun=All", results{status(500), lost, status(201)}, 3, 201},
	} {
		t.Run(name, func(t *testing.T) {
			g, server := NewWithT(t), &attempts{results: tc.results}
			var pauses []int
			r := &retrying{next: server, pause: func(_ context.Context, retry int) error {
				pauses = append(pauses, retry)
				return nil
			}}
			req, err := http.NewRequestWithContext(t.Context(), tc.method, "https://api.example/a"+tc.query, strings.NewReader("body"))
			g.Expect(err).NotTo(HaveOccurred())
			response, err := r.RoundTrip(req)
			g.Expect(server.bodies).To(HaveLen(tc.attempts))
			g.Expect(server.bodies).To(HaveEach("body"))
			g.Expect(pauses).To(HaveLen(tc.attempts - 1))
			if tc.code == 0 {
				g.Expect(err).To(HaveOccurred())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.StatusCode).To(Equal(tc.code))
			g.Expect(response.Body.Close()).To(Succeed())
		})
	}
	t.Run("a canceled command does not wait", func(t *testing.T) {
		g, server := NewWithT(t), &attempts{results: results{status(503)}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example/a", nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := (&retrying{next: server, pause: Pause}).RoundTrip(req)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(server.bodies).To(HaveLen(1))
	})
	t.Run("a body that can be read only once is sent once", func(t *testing.T) {
		g, server := NewWithT(t), &attempts{results: results{status(503)}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://api.example/a", io.NopCloser(strings.NewReader("body")))
		g.Expect(err).NotTo(HaveOccurred())
		response, err := (&retrying{next: server, pause: Pause}).RoundTrip(req)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(server.bodies).To(HaveLen(1))
	})
}
