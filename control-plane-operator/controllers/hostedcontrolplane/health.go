// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/safeerror"
)

const (
	healthTimeout = 10 * time.Second
	// maxHealthAnswer is the maximum size in bytes of an answer, which lists about 50 checks.
	maxHealthAnswer = 64 << 10
)

// AskHealth checks the health of an API server at its published address. It does not verify the certificate: it only
// checks whether the address is reachable, and the request carries no secret. A failing plugin does not make the
// server unhealthy. A tenant may choose the address, so guard enforces an address policy; nil allows every address.
// The error does not contain what the connection revealed.
func AskHealth(ctx context.Context, e component.Endpoint, guard *addressguard.Guard) error {
	url := pki.URL(e)
	status, failed, err := askHealth(ctx, url, guard)
	if err != nil {
		return fmt.Errorf("the API server cannot be reached at its published address %s: %w", url, safely(err))
	}
	if status != http.StatusOK && !slices.Equal(failed, []string{kubeapiserver.PluginsCheck}) {
		return fmt.Errorf("the API server at %s/healthz answers %d %s", url, status, http.StatusText(status))
	}
	return nil
}

// AskPlugins asks the API server at a pod's address whether its encryption plugins answer. The result is empty if they
// do. It is also empty if the API server itself does not answer, which other checks report.
func AskPlugins(ctx context.Context, address string) string {
	return askPlugins(ctx, "https://"+net.JoinHostPort(address, strconv.Itoa(infra.APIPort)))
}

func askPlugins(ctx context.Context, server string) string {
	_, failed, err := askHealth(ctx, server, nil)
	if err == nil && slices.Contains(failed, kubeapiserver.PluginsCheck) {
		return "the plugin does not answer the API server, or reports that it is unhealthy"
	}
	return ""
}

// askHealth returns the status of the answer and the failed checks that the API server lists. It follows no redirect.
func askHealth(ctx context.Context, server string, guard *addressguard.Guard) (status int, failed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	url := server + "/healthz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("asking %s: %w", url, err)
	}
	dialer := &net.Dialer{Control: guard.Control}
	client := &http.Client{
		//nolint:gosec // Only whether it answers counts, and no secret is sent. The user may have brought the certificate.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
			DialContext: dialer.DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHealthAnswer))
	if err != nil {
		return 0, nil, fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	for line := range strings.SplitSeq(string(body), "\n") {
		if check, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(check, " ")
			failed = append(failed, name)
		}
	}
	return response.StatusCode, failed, nil
}

// safely returns an error for conditions, which tenants read. The error of an address policy is returned unchanged; of
// other errors, only a text without connection details remains.
func safely(err error) error {
	if refused, ok := errors.AsType[*addressguard.RefusedError](err); ok {
		return refused
	}
	return errors.New(safeerror.Text(err))
}

// AskCertificate checks that the certificate of the server at host:port names a host and is signed by one of these CAs
// (PEM). A tenant may choose the address, so guard enforces an address policy; nil allows every address. The error
// does not contain what the connection revealed.
func AskCertificate(ctx context.Context, address, host string, cas []byte, guard *addressguard.Guard) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cas)
	dialer := &tls.Dialer{
		NetDialer: &net.Dialer{Control: guard.Control},
		Config:    &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: host},
	}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("asking %s for its certificate: %w", address, safely(err))
	}
	return connection.Close()
}
