// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/maas"
)

// TestPublicRepeatsNothing checks that conditions do not reveal a server's answers to a user that can choose any
// endpoint.
func TestPublicRepeatsNothing(t *testing.T) {
	const inside = "word-from-inside"
	const text, page, object = "text/plain", "text/html", "application/json"
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"an error in plain text":                         {says(400, text, inside), "cannot deploy machine wq4h8c: MAAS says Bad Request (HTTP 400)"},
		"an error with fields":                           {says(400, object, `{"`+inside+`": ["`+inside+`"]}`), "cannot deploy machine wq4h8c: MAAS says Bad Request (HTTP 400)"},
		"an error with a list":                           {says(409, object, `["`+inside+`"]`), "cannot deploy machine wq4h8c: MAAS says Conflict (HTTP 409)"},
		"a crash":                                        {says(500, text, inside), "cannot deploy machine wq4h8c: MAAS says Internal Server Error (HTTP 500)"},
		"a refusal of the API key":                       {says(401, text, "Authorization Error: 'Expired timestamp: "+inside+"'"), "differ by more than five minutes (HTTP 401)"},
		"a refusal of the API key for an unknown reason": {says(401, text, inside), "cannot deploy machine wq4h8c: MAAS refuses the API key (HTTP 401)"},
		"a missing permission":                           {says(403, text, inside), "the MAAS user of the API key may not do this"},
		"the page of a proxy":                            {says(404, page, "<p>"+inside), "is not that of a MAAS API, check the endpoint"},
		"a successful answer that is not from MAAS":      {says(200, page, inside), "is not that of a MAAS API, check the endpoint"},
		"an answer that breaks off":                      {breakOff, "does not answer: it does not speak HTTP as MAAS does"},
	} {
		t.Run("When the answer is "+name+", it should print only the kind of error", func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			_, err := newClient(t, maas.Config{Endpoint: answers(t, &calls, tc.answer)}).DeployMachine(t.Context(), "wq4h8c", maas.DeployRequest{})
			public := maas.Public(fmt.Errorf("reconciling: %w", err))
			g.Expect(public).To(ContainSubstring(tc.want))
			g.Expect(public).NotTo(ContainSubstring(inside))
		})
	}
	t.Run("When the error is not from MAAS, it should print none of it", func(t *testing.T) {
		NewWithT(t).Expect(maas.Public(errors.New(inside))).NotTo(ContainSubstring(inside))
	})
}

// TestPublicHelps checks that a tenant learns what to fix.
func TestPublicHelps(t *testing.T) {
	secured := httptest.NewTLSServer(body("{}"))
	t.Cleanup(secured.Close)
	var calls atomic.Int32
	open := answers(t, &calls, body("{}"))
	deadline, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		cfg  maas.Config
		want string
	}{
		"no server listens":                    {t.Context(), maas.Config{Endpoint: "http://127.0.0.1:1/MAAS"}, "connection refused"},
		"the address is blocked":               {t.Context(), maas.Config{Endpoint: open, Guard: &maas.Guard{}}, "--maas-allow-cidrs"},
		"the certificate authority is unknown": {t.Context(), maas.Config{Endpoint: secured.URL}, "put the CA into " + maas.SecretKeyCABundle},
		"the deadline has passed":              {deadline, maas.Config{Endpoint: open}, "the call timed out"},
		"the server does not use TLS":          {t.Context(), maas.Config{Endpoint: strings.Replace(open, "http:", "https:", 1)}, "it does not speak HTTP as MAAS does"},
		"the server requires TLS":              {t.Context(), maas.Config{Endpoint: strings.Replace(secured.URL, "https:", "http:", 1)}, "(HTTP 400)"},
	} {
		t.Run("When "+name+", the message should name the cause", func(t *testing.T) {
			g := NewWithT(t)
			_, err := newClient(t, tc.cfg).GetVersion(tc.ctx)
			g.Expect(err).To(HaveOccurred())
			g.Expect(maas.Public(err)).To(ContainSubstring(tc.want), "%v", err)
		})
	}
	for name, tc := range map[string]struct {
		cause error
		want  string
	}{
		"there is no such name":               {&net.OpError{Op: "dial", Err: &net.DNSError{Name: "maas", Server: "10.0.0.53:53"}}, "there is no such host"},
		"there is no route to the host":       {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, "no route to it"},
		"the network is unreachable":          {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}, "no route to it"},
		"the certificate is for another name": {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "maas"}, "its certificate is for another name"},
		"the certificate has expired":         {x509.CertificateInvalidError{Reason: x509.Expired}, "its certificate is not valid"},
		"the connection times out":            {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "the call timed out"},
	} {
		t.Run("When "+name+", the message should name the cause", func(t *testing.T) {
			err := &maas.UnreachableError{Operation: "read the version", Endpoint: "maas:443", Err: fmt.Errorf("wrapped: %w", tc.cause)}
			NewWithT(t).Expect(maas.Public(err)).To(Equal("cannot read the version: MAAS at maas:443 does not answer: " + tc.want))
		})
	}
}
