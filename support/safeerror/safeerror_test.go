// SPDX-License-Identifier: Apache-2.0

package safeerror_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/safeerror"
)

// secrets are details of the call that the errors below contain and that descriptions must not contain.
var secrets = []string{"10.9.8.7", "10.244.0.5", "internal.example", "hunter2", "X-Secret", "/v2/"}

// dial returns a connection error, in the form that net/http returns it.
func dial(cause error) error {
	local, remote := &net.TCPAddr{IP: net.IPv4(10, 244, 0, 5), Port: 41000},
		&net.TCPAddr{IP: net.IPv4(10, 9, 8, 7), Port: 443}
	return &url.Error{Op: "Get", URL: "https://internal.example/v2/", Err: &net.OpError{
		Op: "dial", Net: "tcp", Source: local, Addr: remote, Err: cause,
	}}
}

// several joins errors as go-containerregistry does for https and http.
func several(causes ...error) error { return errors.Join(causes...) }

// timedOut is a net.Error of no other class.
type timedOut struct{}

func (timedOut) Error() string   { return "10.9.8.7: i/o timeout" }
func (timedOut) Timeout() bool   { return true }
func (timedOut) Temporary() bool { return true }

func TestText(t *testing.T) {
	certificate := &x509.Certificate{DNSNames: []string{"internal.example"}}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a refused connection": {dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "the connection was refused"},
		"a reset connection":   {dial(os.NewSyscallError("read", syscall.ECONNRESET)), "the connection was reset"},
		"a broken pipe":        {dial(os.NewSyscallError("write", syscall.EPIPE)), "the connection was reset"},
		"no route":             {dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "the host cannot be reached"},
		"no network":           {dial(os.NewSyscallError("connect", syscall.ENETUNREACH)), "the host cannot be reached"},
		"another connection":   {dial(errors.New("10.9.8.7 has a fault")), "the connection failed"},
		"a timeout":            {dial(timedOut{}), "there was no answer in time"},
		"a deadline":           {fmt.Errorf("asking 10.9.8.7: %w", context.DeadlineExceeded), "there was no answer in time"},
		"a cancellation":       {fmt.Errorf("asking 10.9.8.7: %w", context.Canceled), "the request was cancelled"},
		"an unknown name": {dial(&net.DNSError{Name: "internal.example", Server: "10.9.8.7:53", IsNotFound: true}),
			"the host name does not resolve"},
		"a failed resolver": {dial(&net.DNSError{Name: "internal.example", Server: "10.9.8.7:53"}),
			"the host name cannot be resolved"},
		"an unknown authority": {dial(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{Cert: certificate}}),
			"not trusted"},
		"another host name": {dial(x509.HostnameError{Certificate: certificate, Host: "10.9.8.7"}), "other host names"},
		"an old certificate": {dial(x509.CertificateInvalidError{Cert: certificate, Reason: x509.Expired,
			Detail: "hunter2"}), "expired"},
		"a bad certificate": {dial(x509.CertificateInvalidError{Cert: certificate, Reason: x509.NotAuthorizedToSign}),
			"not valid"},
		"another certificate": {dial(&tls.CertificateVerificationError{Err: errors.New("internal.example")}),
			"cannot be verified"},
		"no TLS": {dial(tls.RecordHeaderError{Msg: "first record is hunter2"}), "does not speak TLS"},
		"plain HTTP": {&url.Error{Op: "Get", URL: "https://10.9.8.7/", Err: http.ErrSchemeMismatch},
			"does not speak TLS"},
		"a TLS alert":        {dial(tls.AlertError(40)), "the TLS handshake failed"},
		"a truncated answer": {fmt.Errorf("reading internal.example: %w", io.ErrUnexpectedEOF), "closed before"},
		"no answer":          {&url.Error{Op: "Get", URL: "https://10.9.8.7/v2/", Err: io.EOF}, "closed before"},
		"another fault of a URL": {&url.Error{Op: "Get", URL: "https://10.9.8.7/v2/",
			Err: errors.New("malformed HTTP response \"hunter2\"")},
			safeerror.Unknown},
		"an answer": {&transport.Error{StatusCode: 418,
			Errors: []transport.Diagnostic{{Code: "X-Secret", Message: "hunter2"}}}, "status 418 I'm a teapot"},
		"an answer with an error code": {&transport.Error{StatusCode: 404,
			Errors: []transport.Diagnostic{{Code: transport.ManifestUnknownErrorCode, Message: "hunter2", Detail: "hunter2"}}},
			"404 Not Found (manifest unknown)"},
		"an answer with an unknown status": {&transport.Error{StatusCode: 599}, "status 599"},
		"https and http": {several(dial(errors.New("tls: hunter2")), &url.Error{Op: "Get", URL: "http://10.9.8.7/v2/",
			Err: syscall.ECONNREFUSED}),
			"the connection was refused"},
		"an error of no known class": {errors.New("hunter2 of internal.example at 10.9.8.7"), safeerror.Unknown},
	} {
		t.Run("describes "+name+" without the address that was called", func(t *testing.T) {
			g := NewWithT(t)
			text := safeerror.Text(tc.err)
			g.Expect(text).To(ContainSubstring(tc.want))
			for _, secret := range secrets {
				g.Expect(text).NotTo(ContainSubstring(secret))
			}
			g.Expect(strings.ContainsAny(text, "\n\r\"")).To(BeFalse())
			g.Expect(safeerror.Known(tc.err)).To(Equal(tc.want != safeerror.Unknown))
		})
	}
	t.Run("is empty without an error", func(t *testing.T) {
		NewWithT(t).Expect(safeerror.Text(nil)).To(BeEmpty())
	})
}

func TestNetwork(t *testing.T) {
	g := NewWithT(t)
	g.Expect(safeerror.Network(&url.Error{Op: "Get", URL: "https://10.9.8.7/", Err: errors.New("malformed")})).To(BeTrue())
	g.Expect(safeerror.Network(dial(syscall.ECONNREFUSED))).To(BeTrue())
	g.Expect(safeerror.Network(errors.New("the field is empty"))).To(BeFalse())
}
