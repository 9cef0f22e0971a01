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

// Config says how to reach a MAAS and as whom. Endpoint and APIKey are required.
type Config struct {
	// Endpoint is the URL of the region, e.g. "https://maas.example.com:5443/MAAS"; one that ends in "/api/2.0/" is
	// understood as well.
	Endpoint string
	// APIKey is "consumer:token:secret", as "maas apikey" prints it.
	APIKey string
	// CABundle is PEM; empty means the certificate authorities of the system.
	CABundle []byte
	// ReadTimeout bounds one attempt of a GET; a list of machines may take three times as long, since MAAS is slow to print
	// many, and longer after one that took too long. Zero means 20 s.
	ReadTimeout time.Duration
	// WriteTimeout bounds one attempt of any other call. Zero means 60 s: MAAS asks its racks before it answers.
	WriteTimeout time.Duration
	// DialTimeout bounds the connection and the TLS handshake. Zero means 5 s.
	DialTimeout time.Duration
	// MaxBody bounds what is read of any answer, in bytes. Zero means 128 MiB of a list of machines, 16 MiB of another
	// list, and 4 MiB of anything else.
	MaxBody int64
	// Retry says how calls are repeated; the zero value means its defaults.
	Retry RetryPolicy
	// Metrics counts the calls; nil counts nothing.
	Metrics *Metrics
	// Clock tells the time of signatures and delays; nil means the real one.
	Clock clock.Clock
	// Transport replaces the HTTP transport, for tests; nil makes one with a connection pool.
	Transport http.RoundTripper
	// Guard says what may be called where the endpoint is the choice of somebody who is not trusted; nil allows all. Through a proxy,
	// it is the proxy that is called.
	Guard *Guard
	// UserAgent is sent along; empty means "hypershift-maas".
	UserAgent string
}

// RetryPolicy bounds how an idempotent call is repeated on 429, 502, 503, 504 and connection errors.
type RetryPolicy struct {
	// Attempts counts the first one too. Zero means 3, negative means one only.
	Attempts int
	// BaseDelay is the mean delay before the second attempt, doubled for each further one. Zero means 500 ms.
	BaseDelay time.Duration
	// MaxDelay bounds a delay, but not what the server asks for with Retry-After. Zero means 10 s.
	MaxDelay time.Duration
	// Budget is the time since the first attempt after which no further one starts. Zero means 12 s, which lets a caller
	// report an unreachable MAAS within half a minute. A server that asks for more is given it: the caller gets the error, with
	// its RetryAfter.
	Budget time.Duration
}

// NewClient checks the configuration and returns a client. It makes no call.
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
			// A redirect would carry the signature to another host.
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

// parseEndpoint returns the URL below which all calls are, with a slash at its end.
func parseEndpoint(endpoint string) (*url.URL, error) {
	const want = `it must look like "https://maas.example.com:5443/MAAS"`
	if strings.TrimSpace(endpoint) == "" {
		return nil, errors.New("the MAAS endpoint is empty: " + want)
	}
	u, err := url.Parse(strings.TrimSpace(endpoint))
	if err != nil {
		// The text of a parse error repeats its input, which may hold a password.
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
