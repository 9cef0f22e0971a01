// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

const (
	apiPath = "/api/2.0/"

	defaultReadTimeout  = 20 * time.Second
	defaultWriteTimeout = 60 * time.Second
	defaultDialTimeout  = 5 * time.Second
)

// Config configures the connection to a MAAS and its credentials. Endpoint and APIKey are required.
type Config struct {
	// Endpoint is the URL of the region, e.g. "https://maas.example.com:5443/MAAS". It may end in "/api/2.0/".
	Endpoint string
	// APIKey is "consumer:token:secret", as "maas apikey" prints it.
	APIKey string
	// CABundle is PEM; empty means the certificate authorities of the system.
	CABundle []byte
	// ReadTimeout is the time limit of one attempt of a GET. Zero means 20 s. A list of machines may take three times as
	// long, because MAAS needs long for many machines. After a list that timed out, it may take even longer.
	ReadTimeout time.Duration
	// WriteTimeout is the time limit of one attempt of any other call. Zero means 60 s: MAAS calls its racks before it
	// answers.
	WriteTimeout time.Duration
	// DialTimeout is the time limit of the connection and of the TLS handshake. Zero means 5 s.
	DialTimeout time.Duration
	// MaxBody is the maximum size of any answer, in bytes. Zero means 128 MiB for a list of machines, 16 MiB for any
	// other list, and 4 MiB for anything else.
	MaxBody int64
	// Retry configures the retries of calls; the zero value means its defaults.
	Retry RetryPolicy
	// Metrics counts the calls; nil counts nothing.
	Metrics *Metrics
	// Clock provides the time for signatures and delays; nil means the real one.
	Clock clock.Clock
	// Transport replaces the HTTP transport, for tests; nil creates one with a connection pool.
	Transport http.RoundTripper
	// Guard is the address policy for an endpoint that an untrusted user chooses; nil allows all addresses. With a proxy,
	// the policy applies to the proxy's address.
	Guard *Guard
	// UserAgent is the User-Agent header; empty means "hypershift-maas".
	UserAgent string
}

// RetryPolicy configures the retries of an idempotent call on 429, 502, 503, 504 and connection errors.
type RetryPolicy struct {
	// Attempts is the maximum number of attempts, including the first. Zero means 3, negative means 1.
	Attempts int
	// BaseDelay is the mean delay before the second attempt. It doubles for each further attempt. Zero means 500 ms.
	BaseDelay time.Duration
	// MaxDelay is the maximum delay, except for delays that the server requests with Retry-After. Zero means 10 s.
	MaxDelay time.Duration
	// Budget is the time since the first attempt after which no further attempt starts. Zero means 12 s, so that a caller
	// can report an unreachable MAAS within half a minute. If the server requests a longer delay, the caller gets the
	// error with its RetryAfter.
	Budget time.Duration
}

// NewClient validates the configuration and returns a client. It makes no call.
func NewClient(cfg Config) (*Client, error) {
	base, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	key, err := parseAPIKey(cfg.APIKey)
	if err != nil {
		return nil, err
	}
	cfg = withDefaults(cfg)
	transport := cfg.Transport
	if transport == nil {
		if transport, err = newTransport(cfg); err != nil {
			return nil, err
		}
	}
	return &Client{
		base: base,
		key:  key,
		cfg:  cfg,
		http: &http.Client{
			Transport: transport,
			// Do not follow redirects: they would send the signature to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func withDefaults(cfg Config) Config {
	cfg.ReadTimeout = orDuration(cfg.ReadTimeout, defaultReadTimeout)
	cfg.WriteTimeout = orDuration(cfg.WriteTimeout, defaultWriteTimeout)
	cfg.DialTimeout = orDuration(cfg.DialTimeout, defaultDialTimeout)
	if cfg.Retry.Attempts == 0 {
		cfg.Retry.Attempts = 3
	}
	cfg.Retry.BaseDelay = orDuration(cfg.Retry.BaseDelay, 500*time.Millisecond)
	cfg.Retry.MaxDelay = orDuration(cfg.Retry.MaxDelay, 10*time.Second)
	cfg.Retry.Budget = orDuration(cfg.Retry.Budget, 12*time.Second)
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "hypershift-maas"
	}
	return cfg
}

func orDuration(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

func newTransport(cfg Config) (*http.Transport, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(cfg.CABundle) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(cfg.CABundle) {
			return nil, errors.New("the MAAS CA bundle holds no certificate: it must be PEM")
		}
		tlsConfig.RootCAs = pool
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: cfg.DialTimeout, KeepAlive: 30 * time.Second, Control: cfg.Guard.Control}).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: cfg.DialTimeout,
		MaxIdleConns:        32,
		MaxIdleConnsPerHost: 32,
		MaxConnsPerHost:     32,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}, nil
}

// parseEndpoint returns the base URL of all calls, with a trailing slash.
func parseEndpoint(endpoint string) (*url.URL, error) {
	const want = `it must look like "https://maas.example.com:5443/MAAS"`
	if strings.TrimSpace(endpoint) == "" {
		return nil, errors.New("the MAAS endpoint is empty: " + want)
	}
	u, err := url.Parse(strings.TrimSpace(endpoint))
	if err != nil {
		// Do not wrap the parse error: it repeats its input, which may contain a password.
		return nil, errors.New("the MAAS endpoint is not a URL: " + want)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("the MAAS endpoint is not an http or https URL: " + want)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("the MAAS endpoint at %s holds a user, a query or a fragment: %s", u.Host, want)
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), strings.TrimSuffix(apiPath, "/")) + apiPath
	return u, nil
}
