// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/openshift/hypershift/support/addressguard"
)

const (
	// MaxAnswer is the maximum size of an API server's answer, in bytes, unless Options set a different limit.
	MaxAnswer = 4 << 20
	// MaxList is a maximum size for lists of thousands of objects, in bytes.
	MaxList = 64 << 20

	dialTimeout = 10 * time.Second
)

// Options configure the connection to an API server.
type Options struct {
	// Guard is the address policy for a server that a tenant chose; nil allows every address.
	Guard *addressguard.Guard
	// Timeout is the time limit of each request. Zero leaves the limit to the request's context, as watches need it.
	Timeout time.Duration
	// MaxAnswer is the maximum size of each answer except watches, in bytes. Zero means the constant MaxAnswer, negative
	// means no limit.
	MaxAnswer int64
	// UserAgent is the User-Agent header; empty means client-go's default.
	UserAgent string
}

// Load parses a kubeconfig and returns a client configuration, see Parse and Access.Config.
func Load(raw []byte, o Options) (*rest.Config, error) {
	access, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	return access.Config(o)
}

// Config returns a client configuration. Its clients do not follow redirects, and fail on answers that exceed the
// maximum size. They use a proxy of the kubeconfig only with a Guard, which checks the proxy's address.
func (a *Access) Config(o Options) (*rest.Config, error) {
	config := a.config()
	if a.ProxyURL != "" {
		if o.Guard == nil {
			return nil, &FieldError{Field: "clusters[].cluster.proxy-url",
				Reason: "is not followed here; set the proxy in the environment"}
		}
		proxy, err := url.Parse(a.ProxyURL)
		if err != nil {
			return nil, errors.New("clusters[].cluster.proxy-url is not a URL")
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	config.Timeout, config.UserAgent = o.Timeout, o.UserAgent
	if o.Guard != nil {
		dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, Control: o.Guard.Control}
		if o.Timeout > 0 {
			dialer.Timeout = min(dialTimeout, o.Timeout)
		}
		config.Dial = dialer.DialContext
	}
	limit := cmp.Or(o.MaxAnswer, MaxAnswer)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &bounded{next: next, limit: limit} })
	return config, nil
}

func (a *Access) config() *rest.Config {
	return &rest.Config{
		Host: a.Server, BearerToken: a.Token,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: a.TLSServerName, CAData: a.CA, CertData: a.ClientCertificate, KeyData: a.ClientKey,
		},
	}
}

// TooLargeError reports an answer that exceeds the maximum size.
type TooLargeError struct {
	// Limit is the maximum size in bytes.
	Limit int64
}

// Error returns a message with the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the answer of the API server is larger than %d bytes", e.Limit)
}

// ErrRedirect reports a redirect that was not followed. Following it would send the client's credentials to the URL in
// the answer.
var ErrRedirect = errors.New("the API server redirects to another URL, which is not followed; name that URL in the kubeconfig")

// bounded limits the size of answers and refuses redirects.
type bounded struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	switch {
	case answer.StatusCode >= 300 && answer.StatusCode < 400 && answer.Header.Get("Location") != "":
		return nil, errors.Join(ErrRedirect, answer.Body.Close())
	case b.limit < 0, answer.StatusCode == http.StatusSwitchingProtocols, endless(request.URL.Query()):
		return answer, nil
	case answer.ContentLength > b.limit:
		return nil, errors.Join(&TooLargeError{Limit: b.limit}, answer.Body.Close())
	}
	answer.Body = &limitedBody{ReadCloser: answer.Body, limit: b.limit, left: b.limit}
	return answer, nil
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (b *bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// endless reports whether the response to a request is a stream: a watch, or a followed log. The reader of a stream
// handles one event at a time.
func endless(query url.Values) bool {
	on := func(key string) bool { return query.Get(key) == "true" || query.Get(key) == "1" }
	return on("watch") || on("follow")
}

// limitedBody is a body whose reader fails if the body exceeds the limit. The reader of io.LimitReader would return
// io.EOF.
type limitedBody struct {
	io.ReadCloser
	limit, left int64
}

// Read implements io.Reader.
func (l *limitedBody) Read(p []byte) (int, error) {
	// Reading one byte more distinguishes an answer of exactly the limit from a larger one.
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if int64(n) > l.left {
		n, l.left = int(l.left), 0
		return n, &TooLargeError{Limit: l.limit}
	}
	l.left -= int64(n)
	return n, err
}
