// SPDX-License-Identifier: Apache-2.0

// Package safeerror describes errors of network calls for conditions, events and logs that tenants read. A description
// never contains an address, a host name, a header or a part of the answer. A user that chooses what the operator calls
// could otherwise explore the network around it.
package safeerror

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

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openshift/hypershift/support/addressguard"
)

// Unknown is the description of an error of no known class.
const Unknown = "the request failed"

// class describes the errors that it matches.
type class struct {
	matches func(error) bool
	text    string
}

// classes are tried in order: the more specific ones come first.
var classes = []class{
	{as[*addressguard.RefusedError], (&addressguard.RefusedError{}).Error()},
	{is(context.Canceled), "the request was cancelled"},
	{is(context.DeadlineExceeded, os.ErrDeadlineExceeded), "there was no answer in time"},
	{as[x509.UnknownAuthorityError], "the certificate is signed by an authority that is not trusted"},
	{as[x509.HostnameError], "the certificate is valid for other host names"},
	{expired, "the certificate is expired or not yet valid"},
	{as[x509.CertificateInvalidError], "the certificate is not valid"},
	{as[*tls.CertificateVerificationError], "the certificate cannot be verified"},
	{as[tls.RecordHeaderError], "the server does not speak TLS"},
	{is(http.ErrSchemeMismatch), "the server does not speak TLS"},
	{as[tls.AlertError], "the TLS handshake failed"},
	{unresolved, "the host name does not resolve"},
	{as[*net.DNSError], "the host name cannot be resolved"},
	{is(syscall.ECONNREFUSED), "the connection was refused"},
	{is(syscall.ECONNRESET, syscall.EPIPE), "the connection was reset"},
	{is(syscall.EHOSTUNREACH, syscall.ENETUNREACH), "the host cannot be reached"},
	{timeout, "there was no answer in time"},
	{is(io.EOF, io.ErrUnexpectedEOF), "the connection was closed before the answer was complete"},
	{as[*net.OpError], "the connection failed"},
}

// codes are the error codes of the distribution specification. A registry may answer with any other text.
var codes = map[transport.ErrorCode]string{
	transport.BlobUnknownErrorCode:         "blob unknown",
	transport.DeniedErrorCode:              "access denied",
	transport.ManifestUnknownErrorCode:     "manifest unknown",
	transport.NameInvalidErrorCode:         "invalid repository name",
	transport.NameUnknownErrorCode:         "repository unknown",
	transport.UnauthorizedErrorCode:        "authentication required",
	transport.TooManyRequestsErrorCode:     "too many requests",
	transport.UnsupportedErrorCode:         "unsupported operation",
	transport.ManifestBlobUnknownErrorCode: "blob unknown",
}

// Known reports whether err is of a class that Text describes.
func Known(err error) bool { return known(err) != "" }

// Text returns a short description of err; empty for nil.
func Text(err error) string {
	if err == nil {
		return ""
	}
	if text := known(err); text != "" {
		return text
	}
	return Unknown
}

// Network reports whether err comes from a network call, whether or not its class is known.
func Network(err error) bool {
	return Known(err) || as[*url.Error](err) || as[net.Error](err)
}

func known(err error) string {
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return status(answer)
	}
	for _, c := range classes {
		if c.matches(err) {
			return c.text
		}
	}
	return ""
}

// status returns the status and the error codes of a registry's answer.
func status(answer *transport.Error) string {
	text := fmt.Sprintf("the registry answered with status %d", answer.StatusCode)
	if name := http.StatusText(answer.StatusCode); name != "" {
		text += " " + name
	}
	var diagnoses []string
	for _, diagnosis := range answer.Errors {
		if name, ok := codes[diagnosis.Code]; ok {
			diagnoses = append(diagnoses, name)
		}
	}
	if len(diagnoses) == 0 {
		return text
	}
	return text + " (" + strings.Join(diagnoses[:min(len(diagnoses), 3)], ", ") + ")"
}

func is(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
}

func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func expired(err error) bool {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok && invalid.Reason == x509.Expired
}

func unresolved(err error) bool {
	failure, ok := errors.AsType[*net.DNSError](err)
	return ok && failure.IsNotFound
}

func timeout(err error) bool {
	failure, ok := errors.AsType[net.Error](err)
	return ok && failure.Timeout()
}
