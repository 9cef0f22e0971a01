// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	igncfg "github.com/coreos/ignition/v2/config/v3_4"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/nodeplan"
)

type fakeTokens map[string]token.Entry

func (f fakeTokens) Get(t string) (token.Entry, bool) { e, ok := f[t]; return e, ok }

func (f fakeTokens) Config(pool, hash string) (token.Entry, bool) {
	for _, e := range f {
		if e.NodePool == pool && e.Hash == hash {
			return e, true
		}
	}
	return token.Entry{}, false
}

// fakeCredentials gives each machine its name as credentials.
type fakeCredentials struct{}

func (fakeCredentials) Payload(_ context.Context, e token.Entry) ([]byte, error) {
	switch e.Machine {
	case "":
		return e.Payload, nil
	case "unlucky":
		return nil, errors.New("the guest's API is away, and so is " + knownToken)
	}
	return []byte(`{"machine":"` + e.Machine + `"}`), nil
}

type fakeObserver struct {
	served []token.Entry
	missed int
	// refused counts rejected certificates.
	refused int
	err     error
}

func (f *fakeObserver) Served(ctx context.Context, e token.Entry) error {
	f.served = append(f.served, e)
	return errors.Join(f.err, ctx.Err())
}

func (f *fakeObserver) Missed()  { f.missed++ }
func (f *fakeObserver) Refused() { f.refused++ }

// newServer returns a server with fakes.
func newServer(tokens fakeTokens, observer *fakeObserver, programs fs.FS, log *slog.Logger) *Server {
	return &Server{Tokens: tokens, Credentials: fakeCredentials{}, Observer: observer, Programs: programs, Log: log}
}

var programs = fstest.MapFS{"amd64": {Data: []byte("a program")}}

const knownToken = "11111111-2222-3333-4444-555555555555"

func bearer(text string) string { return "Bearer " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestEndpoint(t *testing.T) {
	entry := token.Entry{Secret: types.NamespacedName{Namespace: "hosted", Name: "token-a"}, NodePool: "clusters/a", Payload: []byte(`{"ignition":{}}`)}
	of := func(machine string) token.Entry { e := entry; e.Machine = machine; return e }
	damaged := token.Entry{Payload: []byte(`{"ignition":`)}
	tests := []struct {
		name, method, path, authorization string
		status                            int
		body                              string
		served, missed                    int
	}{
		{"When the token is known, it should serve the payload", "GET", "/ignition", bearer(knownToken), 200, `{"ignition":{}}`, 1, 0},
		{"When the path has a suffix without a slash, it should serve the payload", "GET", "/ignition-x", bearer(knownToken), 200, `{"ignition":{}}`, 1, 0},
		{"When the token is unknown, it should return a status that Ignition retries", "GET", "/ignition", bearer("other"), 511, "no node configuration", 0, 1},
		{"When there is no token, it should reject the request", "GET", "/ignition", "", 401, "Authorization", 0, 0},
		{"When the authorization scheme is not Bearer, it should reject the request", "GET", "/ignition", "Basic abc", 401, "Authorization", 0, 0},
		{"When the token is not base64, it should reject the request", "GET", "/ignition", "Bearer ***", 401, "Authorization", 0, 0},
		{"When the token is empty, it should reject the request", "GET", "/ignition", "Bearer ", 401, "Authorization", 0, 0},
		{"When the payload is corrupt, it should return an internal error", "GET", "/ignition", bearer("damaged"), 500, "damaged", 0, 0},
		{"When the token belongs to a machine, it should serve the payload of that machine", "GET", "/ignition", bearer("workers-a"), 200, `{"machine":"workers-a"}`, 1, 0},
		{"When creating the credentials of a machine fails, it should return 503", "GET", "/ignition", bearer("unlucky"), 503, "creating the join credentials of this machine failed", 0, 0},
		{"When the path has another segment, it should return 404", "GET", "/ignition/x", bearer(knownToken), 404, "", 0, 0},
		{"When the path is unknown, it should return 404", "GET", "/", bearer(knownToken), 404, "", 0, 0},
		{"When the health endpoint is requested, it should return 200", "GET", "/healthz", "", 200, "", 0, 0},
		{"When node-agent is requested without a token, it should reject the request", "GET", "/node-agent/amd64", "", 401, "Authorization", 0, 0},
		{"When node-agent is requested with an unknown token, it should return a status that Ignition retries", "GET", "/node-agent/amd64", bearer("other"), 511, "no node configuration", 0, 1},
		{"When the architecture is unknown, it should name the supported ones", "GET", "/node-agent/riscv64", bearer(knownToken), 404, "amd64 and arm64", 0, 0},
		{"When the architecture contains a path, it should return 404", "GET", "/node-agent/../x", bearer(knownToken), 404, "", 0, 0},
		{"When the image has no node-agent, it should return an error that names it", "GET", "/node-agent/arm64", bearer(knownToken), 500, "has no node-agent", 0, 0},
		{"When the method is not GET, it should return 405", "POST", "/ignition", bearer(knownToken), 405, "only GET", 0, 0},
		{"When the method for node-agent is not GET, it should return 405", "DELETE", "/node-agent/amd64", bearer(knownToken), 405, "only GET", 0, 0},
		{"When the method for a node configuration is not GET, it should return 405", "PUT", "/node-config/aaaa", bearer(knownToken), 405, "only GET", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			observer := &fakeObserver{}
			server := httptest.NewTLSServer(newServer(fakeTokens{
				knownToken: entry, "damaged": damaged, "workers-a": of("workers-a"), "unlucky": of("unlucky"),
			}, observer, programs, slog.New(slog.DiscardHandler)))
			defer server.Close()
			req, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL+tt.path, nil)
			g.Expect(err).NotTo(HaveOccurred())
			if tt.authorization != "" {
				req.Header.Set("Authorization", tt.authorization)
			}

			resp, err := server.Client().Do(req)
			g.Expect(err).NotTo(HaveOccurred())
			body, err := io.ReadAll(resp.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(resp.Body.Close()).To(Succeed())
			server.Close()

			g.Expect(resp.StatusCode).To(Equal(tt.status))
			g.Expect(string(body)).To(ContainSubstring(tt.body))
			g.Expect(observer.served).To(HaveLen(tt.served))
			g.Expect(observer.missed).To(Equal(tt.missed))
			if tt.status == 405 {
				g.Expect(resp.Header.Get("Allow")).To(Equal("GET"))
			}
			if tt.status == 200 && tt.body != "" {
				g.Expect(resp.Header.Get("Content-Type")).To(Equal("application/json; charset=utf-8"))
			}
		})
	}
}

func TestProgram(t *testing.T) {
	t.Run("When a machine requests node-agent, it should get its checksum and not count as configured", func(t *testing.T) {
		g := NewWithT(t)
		observer := &fakeObserver{}
		handler := newServer(fakeTokens{knownToken: {Payload: []byte("{}")}}, observer, programs, slog.New(slog.DiscardHandler))
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/node-agent/amd64", nil)
		req.Header.Set("Authorization", bearer(knownToken))
		answer := httptest.NewRecorder()

		handler.ServeHTTP(answer, req)

		g.Expect(answer.Code).To(Equal(200))
		g.Expect(answer.Body.String()).To(Equal("a program"))
		sum := sha256.Sum256([]byte("a program"))
		g.Expect(answer.Header().Get("Repr-Digest")).To(Equal("sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"))
		g.Expect(answer.Header()).To(And(HaveKeyWithValue("Content-Type", []string{"application/octet-stream"}), HaveKeyWithValue("Content-Length", []string{"9"})))
		g.Expect(observer.served).To(BeEmpty())
	})
}

// withoutProgram is a configuration that lacks the address of node-agent.
const withoutProgram = `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/opt/hypershift/bin/node-agent"}]}}`

// TestIgnitionFetchesTheProgram fetches the program as Ignition does: from the given address, with the given headers.
// It verifies the checksum.
func TestIgnitionFetchesTheProgram(t *testing.T) {
	programs := fstest.MapFS{"amd64": {Data: []byte("a program")}, "arm64": {Data: []byte("another")}}
	for arch, want := range map[string]string{"": "a program", "amd64": "a program", "arm64": "another"} {
		t.Run("When the architecture of the pool is \""+arch+"\", Ignition should fetch its node-agent with the same token", func(t *testing.T) {
			g := NewWithT(t)
			handler := newServer(fakeTokens{knownToken: {Architecture: arch, Payload: []byte(withoutProgram)}}, &fakeObserver{}, programs, slog.New(slog.DiscardHandler))
			handler.CA = func() []byte { return []byte("the CA") }
			server := httptest.NewTLSServer(handler)
			defer server.Close()
			get := func(url, authorization string) []byte {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
				g.Expect(err).NotTo(HaveOccurred())
				req.Header.Set("Authorization", authorization)
				resp, err := server.Client().Do(req)
				g.Expect(err).NotTo(HaveOccurred())
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(resp.StatusCode).To(Equal(200), string(body))
				return body
			}
			config, report, err := igncfg.Parse(get(server.URL+"/ignition", bearer(knownToken)))
			g.Expect(err).NotTo(HaveOccurred(), report.String())
			contents := config.Storage.Files[0].Contents
			g.Expect(*contents.HTTPHeaders[0].Value).To(Equal(bearer(knownToken)))
			program := get(*contents.Source, *contents.HTTPHeaders[0].Value)
			g.Expect(string(program)).To(Equal(want))
			g.Expect(*contents.Verification.Hash).To(Equal(fmt.Sprintf("sha256-%x", sha256.Sum256(program))))
			g.Expect(config.Storage.Files).To(ContainElements(HaveField("Path", nodeplan.ServerCA), HaveField("Path", nodeplan.ServerEndpoint)),
				"the machine knows where to ask again")
		})
	}
	t.Run("When the image has no node-agent for the pool, it should return 500 and log the architecture", func(t *testing.T) {
		g := NewWithT(t)
		var log strings.Builder
		observer := &fakeObserver{}
		handler := newServer(fakeTokens{knownToken: {Architecture: "ppc64le", Payload: []byte(withoutProgram)}}, observer, programs, slog.New(slog.NewTextHandler(&log, nil)))
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ignition", nil)
		req.Header.Set("Authorization", bearer(knownToken))
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, req)
		g.Expect(answer.Code).To(Equal(500))
		g.Expect(answer.Body.String()).To(ContainSubstring("has no node-agent for the machines of this pool"))
		g.Expect(observer.served).To(BeEmpty())
		g.Expect(log.String()).To(ContainSubstring("ppc64le"))
		g.Expect(log.String()).NotTo(ContainSubstring(bearer(knownToken)))
	})
}

func TestServedAlthoughTheMachineHungUp(t *testing.T) {
	g := NewWithT(t)
	observer := &fakeObserver{}
	handler := newServer(fakeTokens{knownToken: {Payload: []byte("{}")}}, observer, programs, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/ignition", nil)
	req.Header.Set("Authorization", bearer(knownToken))

	handler.ServeHTTP(httptest.NewRecorder(), req)

	g.Expect(observer.served).To(HaveLen(1))
}

func TestNoTokenInLogs(t *testing.T) {
	g := NewWithT(t)
	var log strings.Builder
	observer := &fakeObserver{err: errors.New("API server is away")}
	handler := newServer(fakeTokens{knownToken: {Payload: []byte("{}")}}, observer, programs, slog.New(slog.NewTextHandler(&log, nil)))
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ignition", nil)
	req.Header.Set("Authorization", bearer(knownToken))

	handler.ServeHTTP(httptest.NewRecorder(), req)

	g.Expect(log.String()).To(ContainSubstring("API server is away"))
	g.Expect(log.String()).NotTo(ContainSubstring(knownToken))
	g.Expect(log.String()).NotTo(ContainSubstring(bearer(knownToken)))
}
