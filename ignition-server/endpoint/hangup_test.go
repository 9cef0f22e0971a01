// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/nodeplan"
)

// cutLine is a machine's connection that breaks while the response is written.
type cutLine struct{ *httptest.ResponseRecorder }

func (cutLine) Write([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// asking returns a request with a certificate, or with the token if certificate is nil.
func asking(t *testing.T, path string, certificate *tls.Certificate) *http.Request {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	request.TLS = &tls.ConnectionState{}
	if certificate == nil {
		request.Header.Set("Authorization", bearer(knownToken))
		return request
	}
	shown, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	request.TLS.PeerCertificates = []*x509.Certificate{shown}
	return request
}

// TestHangUp checks that a machine which did not receive its complete configuration is not marked as having received
// it.
func TestHangUp(t *testing.T) {
	today := newSigner(t)
	tokens := inPlaceTokens()
	tokens[knownToken] = token.Entry{NodePool: "clusters/a", Payload: []byte(`{"ignition":{}}`)}
	for path, certificate := range map[string]*tls.Certificate{"/ignition": nil, "/node-agent/amd64": nil, "/node-config/aaaa": today.node("node-a")} {
		t.Run("When the connection breaks while "+path+" is sent, the machine should not count as configured", func(t *testing.T) {
			g, observer, log := NewWithT(t), &fakeObserver{}, &bytes.Buffer{}
			server := newServer(tokens, observer, programs, slog.New(slog.NewTextHandler(log, nil)))
			server.Nodes = hosted(t, interceptor.Funcs{}, today)
			server.ServeHTTP(cutLine{httptest.NewRecorder()}, asking(t, path, certificate))
			g.Expect(observer.served).To(BeEmpty())
			g.Expect(log.String()).To(And(ContainSubstring("hung up"), ContainSubstring("connection reset"), Not(ContainSubstring(knownToken))))
			answer := httptest.NewRecorder()
			server.ServeHTTP(answer, asking(t, path, certificate))
			g.Expect(answer.Code).To(Equal(http.StatusOK), "the next attempt is one like the first")
		})
	}
	t.Run("When recording that a machine got its configuration fails, it should still serve the machine", func(t *testing.T) {
		for path, certificate := range map[string]*tls.Certificate{"/ignition": nil, "/node-config/aaaa": today.node("node-a")} {
			g, observer, log := NewWithT(t), &fakeObserver{err: errors.New("etcd is away")}, &bytes.Buffer{}
			server := newServer(tokens, observer, programs, slog.New(slog.NewTextHandler(log, nil)))
			server.Nodes = hosted(t, interceptor.Funcs{}, today)
			answer := httptest.NewRecorder()
			server.ServeHTTP(answer, asking(t, path, certificate))
			g.Expect(answer.Code).To(Equal(http.StatusOK))
			g.Expect(observer.served).To(HaveLen(1))
			g.Expect(log.String()).To(ContainSubstring("etcd is away"))
		}
	})
}

func TestPlansOfNodes(t *testing.T) {
	today := newSigner(t)
	asked := func(t *testing.T, plan, path string, ca func() []byte) (*fakeObserver, *httptest.ResponseRecorder) {
		t.Helper()
		observer, answer := &fakeObserver{}, httptest.NewRecorder()
		server := newServer(fakeTokens{"1": {NodePool: "clusters/a", Hash: "aaaa", InPlace: &token.InPlace{Plan: []byte(plan)}}}, observer, programs, slog.New(slog.DiscardHandler))
		server.Nodes, server.CA = hosted(t, interceptor.Funcs{}, today), ca
		server.ServeHTTP(answer, asking(t, path, today.node("node-a")))
		return observer, answer
	}
	t.Run("When a plan is corrupt, it should serve no part of it", func(t *testing.T) {
		for _, plan := range []string{`{"version": 1, "pullSecret": "c2VjcmV0`, `{"version": 9}`, `{"ignition": {}}`, "null"} {
			g := NewWithT(t)
			observer, answer := asked(t, plan, "/node-config/aaaa", nil)
			g.Expect(answer.Code).To(Equal(http.StatusInternalServerError))
			g.Expect(answer.Body.String()).To(Equal("the node configuration is damaged\n"))
			g.Expect(observer.served).To(BeEmpty())
		}
	})
	for name, ca := range map[string]func() []byte{"does not know its CA": nil, "has lost its CA": func() []byte { return nil }} {
		t.Run("When the server "+name+", the plan should keep the server files of the Node", func(t *testing.T) {
			g := NewWithT(t)
			_, answer := asked(t, renderedPlan, "/node-config/aaaa", ca)
			plan, err := nodeplan.Parse(answer.Body.Bytes())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(plan.Paths()).To(Equal([]string{"/etc/kept"}))
		})
	}
	t.Run("When a client requests a very long configuration name, the response should stay short", func(t *testing.T) {
		g := NewWithT(t)
		observer, answer := asked(t, renderedPlan, "/node-config/"+strings.Repeat("x", 5000), nil)
		g.Expect(answer.Code).To(Equal(http.StatusNotFound))
		g.Expect(answer.Body.Len()).To(BeNumerically("<", 200))
		g.Expect(observer.refused).To(Equal(1))
	})
}
