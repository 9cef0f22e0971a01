// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
)

const requestTimeout = 30 * time.Second

// errNotFound is the error for metadata that MAAS does not have.
var errNotFound = errors.New("not found")

// metadata is a client of MAAS's metadata endpoint that behaves like cloud-init.
type metadata struct {
	url, systemID                      string
	consumerKey, tokenKey, tokenSecret string
	client                             http.Client
}

func newMetadata(spec boot.Spec) *metadata {
	return &metadata{
		url: strings.TrimSuffix(spec.MetadataURL, "/") + "/", systemID: spec.SystemID,
		consumerKey: spec.ConsumerKey, tokenKey: spec.TokenKey, tokenSecret: spec.TokenSecret,
		client: http.Client{Timeout: requestTimeout},
	}
}

func (m *metadata) get(ctx context.Context, path string) ([]byte, error) {
	return m.do(ctx, http.MethodGet, "2012-03-01/"+path, "", nil)
}

// userData returns the user-data; nil if MAAS has none. The request for it marks the machine as deployed in MAAS.
func (m *metadata) userData(ctx context.Context) ([]byte, error) {
	data, err := m.get(ctx, "user-data")
	if errors.Is(err, errNotFound) {
		return nil, nil
	}
	return data, err
}

func (m *metadata) signalOK(ctx context.Context) error {
	form := url.Values{"op": {"signal"}, "status": {"OK"}}
	_, err := m.do(ctx, http.MethodPost, "2012-03-01/?op=signal", "application/x-www-form-urlencoded", []byte(form.Encode()))
	return err
}

// report reports the end of a cloud-init stage to MAAS.
func (m *metadata) report(ctx context.Context, stage string, failure error) error {
	event := map[string]any{
		"event_type": "finish", "origin": "cloudinit", "name": stage, "description": "stage " + stage,
		"timestamp": float64(time.Now().UnixMilli()) / 1000, "result": "SUCCESS",
	}
	if failure != nil {
		event["result"], event["description"] = "FAIL", failure.Error()
	}
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}
	_, err = m.do(ctx, http.MethodPost, "status/"+m.systemID, "application/json", body)
	return err
}

func (m *metadata) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, m.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", m.authorization())
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := m.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, request.URL, err)
	}
	switch {
	case response.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%s %s: %w", method, request.URL, errNotFound)
	case response.StatusCode >= 300:
		return nil, fmt.Errorf("%s %s: %s: %.200s", method, request.URL, response.Status, answer)
	}
	return answer, nil
}

// authorization returns a new OAuth 1.0 header, signed with PLAINTEXT.
func (m *metadata) authorization() string {
	return fmt.Sprintf(`OAuth realm="", oauth_version="1.0", oauth_signature_method="PLAINTEXT", oauth_nonce=%q, `+
		`oauth_timestamp="%d", oauth_consumer_key=%q, oauth_token=%q, oauth_signature="%%26%s"`,
		uuid.NewString(), time.Now().Unix(), url.QueryEscape(m.consumerKey), url.QueryEscape(m.tokenKey), url.QueryEscape(m.tokenSecret))
}
