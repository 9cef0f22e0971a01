// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"errors"
	"fmt"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Keys of a Secret that holds the credentials of a MAAS. Each of the first two has a second spelling.
const (
	SecretKeyEndpoint    = hyperv1.MAASEndpointKey
	SecretKeyAPIKey      = hyperv1.MAASAPIKeyKey
	SecretKeyCABundle    = hyperv1.MAASCABundleKey
	SecretKeyEndpointAlt = "maas-server-url"
	SecretKeyAPIKeyAlt   = "maas-api-key"
	SecretKeyCABundleAlt = "maas-ca-bundle"
)

// apiKey is a parsed API key. It prints as nothing, so that a stray %v can't leak it.
type apiKey struct {
	consumer, token, secret string
}

func (apiKey) String() string   { return "[hidden]" }
func (apiKey) GoString() string { return "[hidden]" }

func parseAPIKey(s string) (apiKey, error) {
	const want = `it must be "consumer:token:secret", as "maas apikey" prints it`
	s = strings.TrimSpace(s)
	if s == "" {
		return apiKey{}, errors.New("the MAAS API key is empty: " + want)
	}
	parts := strings.Split(s, ":")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return apiKey{}, fmt.Errorf("the MAAS API key has %d parts: %s", len(parts), want)
	}
	return apiKey{consumer: parts[0], token: parts[1], secret: parts[2]}, nil
}

// PlainHTTP says what is wrong with an endpoint without TLS, and what to do, in a sentence without its dot; empty for one with TLS. The method PLAINTEXT of OAuth, the only
// one that MAAS takes, puts the secret of the key into each call.
func PlainHTTP(endpoint string) string {
	u, err := parseEndpoint(endpoint)
	if err != nil || u.Scheme == "https" {
		return ""
	}
	return "The MAAS endpoint is plain http, so that every call sends the API key in the clear: give MAAS a certificate and use https"
}

// PlainHTTP is PlainHTTP of the endpoint that the client calls.
func (c *Client) PlainHTTP() string { return PlainHTTP(c.base.String()) }

// ConfigFromSecret reads endpoint, API key and CA bundle from the data of a Secret, in either spelling. An
// error names the key that is missing or malformed, never its value.
func ConfigFromSecret(data map[string][]byte) (Config, error) {
	cfg := Config{
		Endpoint: firstOf(data, SecretKeyEndpoint, SecretKeyEndpointAlt),
		APIKey:   firstOf(data, SecretKeyAPIKey, SecretKeyAPIKeyAlt),
		CABundle: []byte(firstOf(data, SecretKeyCABundle, SecretKeyCABundleAlt)),
	}
	var missing []string
	if cfg.Endpoint == "" {
		missing = append(missing, SecretKeyEndpoint)
	}
	if cfg.APIKey == "" {
		missing = append(missing, SecretKeyAPIKey)
	}
	if len(missing) > 0 {
		return Config{}, fmt.Errorf("the Secret lacks %s", strings.Join(missing, " and "))
	}
	if _, err := parseEndpoint(cfg.Endpoint); err != nil {
		return Config{}, fmt.Errorf("%s: %w", SecretKeyEndpoint, err)
	}
	if _, err := parseAPIKey(cfg.APIKey); err != nil {
		return Config{}, fmt.Errorf("%s: %w", SecretKeyAPIKey, err)
	}
	return cfg, nil
}

func firstOf(data map[string][]byte, keys ...string) string {
	for _, key := range keys {
		if v := strings.TrimSpace(string(data[key])); v != "" {
			return v
		}
	}
	return ""
}
