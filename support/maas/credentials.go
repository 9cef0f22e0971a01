// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"errors"
	"fmt"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// The keys of a Secret with the credentials of a MAAS. Each key has an alternative name.
const (
	SecretKeyEndpoint    = hyperv1.MAASEndpointKey
	SecretKeyAPIKey      = hyperv1.MAASAPIKeyKey
	SecretKeyCABundle    = hyperv1.MAASCABundleKey
	SecretKeyEndpointAlt = "maas-server-url"
	SecretKeyAPIKeyAlt   = "maas-api-key"
	SecretKeyCABundleAlt = "maas-ca-bundle"
)

// apiKey is a parsed API key. Formatting it does not print it, so that a stray %v cannot leak it.
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

// PlainHTTP returns a sentence, without the final dot, that describes the problem of an endpoint without TLS and its
// remedy. It returns an empty text for an endpoint with TLS. MAAS supports only the PLAINTEXT method of OAuth, which
// puts the secret of the key into each call.
func PlainHTTP(endpoint string) string {
	u, err := parseEndpoint(endpoint)
	if err != nil || u.Scheme == "https" {
		return ""
	}
	return "The MAAS endpoint is plain http, so that every call sends the API key in the clear: give MAAS a certificate and use https"
}

// PlainHTTP returns the result of the function PlainHTTP for the client's endpoint.
func (c *Client) PlainHTTP() string { return PlainHTTP(c.base.String()) }

// ConfigFromSecret reads the endpoint, the API key and the CA bundle from the data of a Secret, with either key names.
// An error names the missing or malformed key, and never has its value.
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
