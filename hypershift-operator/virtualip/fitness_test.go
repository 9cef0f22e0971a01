// SPDX-License-Identifier: Apache-2.0

package virtualip

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

// TestServersOnTheNode checks that a server on the node must stay healthy once it has responded. A server that the
// cluster never had is ignored.
func TestServersOnTheNode(t *testing.T) {
	server := func(t *testing.T, status *atomic.Int32) *httptest.Server {
		t.Helper()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
		t.Cleanup(server.Close)
		return server
	}
	var well, ill atomic.Int32
	well.Store(http.StatusOK)
	ill.Store(http.StatusServiceUnavailable)
	t.Run("When the server never responded, the check should succeed", func(t *testing.T) {
		g, gone := NewWithT(t), server(t, &well)
		check := Answers(gone.URL)
		gone.Close()
		for range strikes {
			g.Expect(check(t.Context())).To(Succeed())
		}
	})
	t.Run("When the first response is unhealthy, the check should fail", func(t *testing.T) {
		g, s := NewWithT(t), server(t, &ill)
		check := Answers(s.URL)
		g.Expect(check(t.Context())).To(MatchError(And(ContainSubstring(s.URL), ContainSubstring("503"))))
		ill.Store(http.StatusOK)
		g.Expect(check(t.Context())).To(Succeed(), "it is well again")
	})
	t.Run("When a server responded before and stops, the check should fail even if it was unhealthy", func(t *testing.T) {
		for _, status := range []int32{http.StatusOK, http.StatusInternalServerError} {
			var says atomic.Int32
			says.Store(status)
			g, s := NewWithT(t), server(t, &says)
			check := Answers(s.URL)
			_ = check(t.Context())
			s.Close()
			g.Expect(check(t.Context())).To(MatchError(ContainSubstring("no longer responding")))
		}
	})
	t.Run("When two servers are checked, it should track each separately", func(t *testing.T) {
		g, first, second := NewWithT(t), server(t, &well), server(t, &well)
		one, other := Answers(first.URL), Answers(second.URL)
		g.Expect(one(t.Context())).To(Succeed())
		first.Close()
		second.Close()
		g.Expect(one(t.Context())).NotTo(Succeed())
		g.Expect(other(t.Context())).To(Succeed())
	})
	t.Run("When the URL is invalid, it should return an error that names the URL", func(t *testing.T) {
		NewWithT(t).Expect(Answers("http://a b")(context.Background())).To(MatchError(ContainSubstring("health check http://a b")))
	})
}
