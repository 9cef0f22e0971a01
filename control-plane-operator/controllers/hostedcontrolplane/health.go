// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
)

const healthTimeout = 10 * time.Second

// AskHealth asks an API server at its published address whether it is well. Its certificate is not verified: the
// question is whether packets arrive, and nothing secret is sent.
func AskHealth(ctx context.Context, e component.Endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	url := pki.URL(e) + "/healthz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	//nolint:gosec // Only whether it answers counts, and no secret is sent. The certificate may be one that the user brought.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the API server cannot be reached at its published address: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server at %s answers %s", url, response.Status)
	}
	return nil
}
