// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/component"
)

func TestAskHealth(t *testing.T) {
	answer, says, to, closes := http.StatusOK, "", "", false
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		closes = r.Close
		if to != "" {
			w.Header().Set("Location", to)
		}
		w.WriteHeader(answer)
		_, _ = w.Write([]byte(says))
	}))
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(u.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := component.Endpoint{Host: u.Hostname(), Port: int32(port)}

	t.Run("When the API server is healthy, it should return no error, whichever CA signed the certificate", func(t *testing.T) {
		NewWithT(t).Expect(AskHealth(t.Context(), endpoint, nil)).To(Succeed())
		NewWithT(t).Expect(closes).To(BeTrue(), "a connection for each question would stay")
	})
	t.Run("When the API server is unhealthy, it should return the server's answer", func(t *testing.T) {
		answer = http.StatusInternalServerError
		NewWithT(t).Expect(AskHealth(t.Context(), endpoint, nil)).To(MatchError(ContainSubstring("500 Internal Server Error")))
	})
	t.Run("When only a KMS plugin fails, it should not report the API server as unhealthy", func(t *testing.T) {
		g := NewWithT(t)
		says = "[+]ping ok\n[-]kms-providers failed: reason withheld\n[+]etcd ok\nhealthz check failed\n"
		g.Expect(AskHealth(t.Context(), endpoint, nil)).To(Succeed())
		g.Expect(askPlugins(t.Context(), server.URL)).To(ContainSubstring("does not answer"))
		says = strings.Replace(says, "[+]etcd ok", "[-]etcd failed: reason withheld", 1)
		g.Expect(AskHealth(t.Context(), endpoint, nil)).To(MatchError(ContainSubstring("500 Internal Server Error")))
		says = "[-]etcd failed: reason withheld\n"
		g.Expect(askPlugins(t.Context(), server.URL)).To(BeEmpty())
	})
	t.Run("When the published address redirects, it should not follow", func(t *testing.T) {
		g, followed := NewWithT(t), false
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
		t.Cleanup(elsewhere.Close)
		answer, to = http.StatusFound, elsewhere.URL
		g.Expect(AskHealth(t.Context(), endpoint, nil)).To(MatchError(ContainSubstring("302 Found")))
		g.Expect(followed).To(BeFalse())
	})
	t.Run("When the API server does not answer, it should return an error without what the connection revealed", func(t *testing.T) {
		server.Close()
		NewWithT(t).Expect(AskHealth(t.Context(), endpoint, nil)).To(MatchError(
			"the API server cannot be reached at its published address " + server.URL + ": the connection was refused"))
	})
}
