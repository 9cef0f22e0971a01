// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/component"
)

func TestAskHealth(t *testing.T) {
	answer := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(answer)
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

	t.Run("When the API server is well it should be no error, whoever signed its certificate", func(t *testing.T) {
		NewWithT(t).Expect(AskHealth(t.Context(), endpoint)).To(Succeed())
	})
	t.Run("When the API server is not well it should say what it answered", func(t *testing.T) {
		answer = http.StatusInternalServerError
		NewWithT(t).Expect(AskHealth(t.Context(), endpoint)).To(MatchError(ContainSubstring("500 Internal Server Error")))
	})
	t.Run("When nobody answers it should say so", func(t *testing.T) {
		server.Close()
		NewWithT(t).Expect(AskHealth(t.Context(), endpoint)).To(MatchError(ContainSubstring("cannot be reached at its published address")))
	})
}
