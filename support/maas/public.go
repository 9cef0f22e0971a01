// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
)

// Public describes an error for a user that chose the endpoint and must not learn what its server answers. The text has
// the status and its meaning for MAAS, or the reason why there is no connection, and nothing of the answer.
func Public(err error) string {
	var refusal *Error
	var foreign *EndpointError
	var silent *UnreachableError
	switch {
	case errors.As(err, &refusal):
		if refusal.StatusCode == http.StatusUnauthorized {
			return refusal.Error() // unauthorizedMessage chose the message, so it is not from the server.
		}
		return (&Error{Operation: refusal.Operation, StatusCode: refusal.StatusCode}).Error()
	case errors.As(err, &foreign):
		return fmt.Sprintf("cannot %s: the answer of %s is not that of a MAAS API, check the endpoint", foreign.Operation, foreign.Endpoint)
	case errors.As(err, &silent):
		return fmt.Sprintf("cannot %s: MAAS at %s does not answer: %s", silent.Operation, silent.Endpoint, whyNoConnection(silent.Err))
	}
	return "the call to MAAS failed"
}

func whyNoConnection(err error) string {
	var refused *RefusedAddressError
	var dns *net.DNSError
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var network net.Error
	switch {
	case errors.As(err, &refused):
		return refused.Error() + allowHint
	case errors.As(err, &dns):
		return "there is no such host"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to it"
	case errors.As(err, &authority):
		return "its certificate is signed by an unknown authority: put the CA into " + SecretKeyCABundle
	case errors.As(err, &hostname):
		return "its certificate is for another name"
	case errors.As(err, &invalid):
		return "its certificate is not valid"
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return "the call timed out"
	}
	return "it does not speak HTTP as MAAS does"
}
