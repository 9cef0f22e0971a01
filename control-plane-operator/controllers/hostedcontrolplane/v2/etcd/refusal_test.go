// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/control-plane-operator/fixture"
	supportpki "github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/testenv"
)

// TestRefusal checks which error is returned for servers that accept only clients of one CA.
func TestRefusal(t *testing.T) {
	ca, other := fixture.CA(t, "corporate"), fixture.CA(t, "other")
	issue := func(by *supportpki.KeyPair, leaf supportpki.Leaf) *supportpki.KeyPair {
		pair, err := by.Issue(leaf, supportpki.Lifetime{Validity: time.Hour}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	serving := issue(ca, supportpki.Leaf{Name: supportpki.Name{CommonName: "etcd"}, Server: true, Hosts: []string{"127.0.0.1"}})
	certificate, err := tls.X509KeyPair(serving.CertPEM, serving.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(ca.Cert)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.StartTLS()
	t.Cleanup(server.Close)
	brokenPipe := errors.New("write: broken pipe")
	nobody := "https://" + testenv.FreeAddress(t)
	for name, test := range map[string]struct {
		of        *supportpki.KeyPair
		endpoints []string
		says      string
	}{
		"the server rejects the client":                          {other, []string{server.URL}, "remote error: tls: "},
		"only the third endpoint answers and rejects the client": {other, []string{nobody, ":", server.URL}, "remote error: tls: "},
		"the server accepts the client and waits for data":       {ca, []string{server.URL}, "write: broken pipe"},
		"the server does not run":                                {ca, []string{nobody}, "write: broken pipe"},
	} {
		t.Run("When "+name+", it should return the matching error", func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			pair := issue(test.of, supportpki.Leaf{Name: supportpki.Name{CommonName: "hosted"}, Client: true})
			config, err := supportpki.ClientTLS(pair.CertPEM, pair.KeyPEM, ca.CertPEM)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect((&asker{tls: config}).refusal(t.Context(), test.endpoints, brokenPipe)).To(MatchError(ContainSubstring(test.says)))
		})
	}
}
