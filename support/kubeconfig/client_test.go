// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/kubeconfig"
)

func serve(t *testing.T, handler http.HandlerFunc) (*httptest.Server, []byte) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return server, written(t, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		c.Server = server.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	})
}

func get(t *testing.T, raw []byte, o kubeconfig.Options, path string) (int, error) {
	t.Helper()
	config, err := kubeconfig.Load(raw, o)
	if err != nil {
		return 0, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(config.Host + path)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return len(body), err
}

func TestAnswersAreBounded(t *testing.T) {
	const limit = 1000
	_, raw := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/exact":
			_, _ = w.Write(bytes.Repeat([]byte("x"), limit))
		case "/larger":
			_, _ = w.Write(bytes.Repeat([]byte("x"), limit+1))
		default: // Without a Content-Length.
			for range limit {
				_, _ = w.Write([]byte("1234567890"))
				w.(http.Flusher).Flush()
			}
		}
	})
	for name, tc := range map[string]struct {
		path  string
		limit int64
		read  int
		fails bool
	}{
		"an answer at the limit is read":            {"/exact", limit, limit, false},
		"a larger answer fails":                     {"/larger", limit, 0, true},
		"a larger answer of unknown length fails":   {"/stream", limit, limit, true},
		"a watch has no limit":                      {"/stream?watch=true", limit, 10 * limit, false},
		"a caller may disable the limit":            {"/stream", -1, 10 * limit, false},
		"without options the default limit applies": {"/stream", 0, 10 * limit, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			read, err := get(t, raw, kubeconfig.Options{MaxAnswer: tc.limit}, tc.path)
			var large *kubeconfig.TooLargeError
			g.Expect(errors.As(err, &large)).To(Equal(tc.fails), "%v", err)
			g.Expect(read).To(Equal(tc.read))
		})
	}
}

// TestRedirects checks that the client sends the token only to the server in the kubeconfig.
func TestRedirects(t *testing.T) {
	var calls atomic.Int32
	other, _ := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	_, raw := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	g := NewWithT(t)
	_, err := get(t, raw, kubeconfig.Options{}, "/version")
	g.Expect(err).To(MatchError(ContainSubstring("redirects to another URL")))
	g.Expect(calls.Load()).To(BeZero())
}

func TestGuard(t *testing.T) {
	var calls atomic.Int32
	server, raw := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	allowed := &addressguard.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	t.Run("blocks a call to a server", func(t *testing.T) {
		_, err := get(t, raw, kubeconfig.Options{Guard: &addressguard.Guard{}}, "/")
		var stopped *addressguard.RefusedError
		NewWithT(t).Expect(errors.As(err, &stopped)).To(BeTrue(), "%v", err)
	})
	t.Run("blocks a call to a proxy", func(t *testing.T) {
		through := strings.Replace(string(raw), "server: "+server.URL, "server: https://203.0.113.1\n    proxy-url: "+
			server.URL, 1)
		_, err := get(t, []byte(through), kubeconfig.Options{Guard: &addressguard.Guard{}}, "/")
		var stopped *addressguard.RefusedError
		NewWithT(t).Expect(errors.As(err, &stopped)).To(BeTrue(), "%v", err)
		_, err = get(t, []byte(through), kubeconfig.Options{}, "/")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("proxy-url")), "without a guard no proxy is followed")
	})
	NewWithT(t).Expect(calls.Load()).To(BeZero())
	t.Run("allows a call to an allowed address", func(t *testing.T) {
		_, err := get(t, raw, kubeconfig.Options{Guard: allowed}, "/")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}
