// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Client calls one MAAS as one user. It is safe for concurrent use.
type Client struct {
	base *url.URL
	key  apiKey
	cfg  Config
	http *http.Client
	// pause holds the delay that a rate-limiting server requested.
	pause pause
	// patience adapts the timeout of machine lists.
	patience patience
	// health remembers the latest failures, for the log.
	health health
}

// Endpoint returns the base URL of the calls, without credentials.
func (c *Client) Endpoint() string { return c.base.String() }

// String returns the client's name with its endpoint. It prevents that printing a client prints the API key in its
// configuration.
func (c *Client) String() string { return "MAAS at " + c.Endpoint() }

// GoString returns the same as String.
func (c *Client) GoString() string { return c.String() }

// CloseIdleConnections closes the connections that no call uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// call is one request of the API.
type call struct {
	// name is the operation's name in metrics: one of a small set of values.
	name string
	// what describes the operation in errors, e.g. "deploy machine wq4h8c".
	what string
	// systemID is the machine of the call. It is empty if the call is not about a machine, or if the answer names it.
	systemID string
	method   string
	path     string
	op       string
	// params are sent in the query of GET and DELETE, and in the form of POST and PUT.
	params url.Values
	// timeout overrides the timeout of the configuration.
	timeout time.Duration
}

func (c call) inBody() bool { return c.method == http.MethodPost || c.method == http.MethodPut }

// idempotent reports whether a call may be repeated when its outcome is unknown. A POST must not be repeated: a second
// release could release a machine that another user has allocated in between.
func (c call) idempotent() bool { return c.method != http.MethodPost }

// collection reports whether a call is about all objects of a kind: "machines/", but not "machines/wq4h8c/".
func (c call) collection() bool { return strings.Count(strings.Trim(c.path, "/"), "/") == 0 }

// do sends a call, retries it if that is safe, and decodes the answer into out unless out is nil.
func (c *Client) do(ctx context.Context, request call, out any) error {
	start := c.cfg.Clock.Now()
	if err := c.pause.left(request, start); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, request, out)
		if err == nil {
			return nil
		}
		delay := c.delay(attempt, err)
		if attempt >= c.cfg.Retry.Attempts || !request.retriable(err) || c.cfg.Clock.Since(start)+delay > c.cfg.Retry.Budget {
			c.pause.note(err, c.cfg.Clock.Now())
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-c.cfg.Clock.After(delay):
		}
		c.cfg.Metrics.retried(request.name)
	}
}

func (c call) retriable(err error) bool {
	var unreachable *UnreachableError
	if errors.As(err, &unreachable) {
		if errors.Is(err, context.Canceled) {
			return false
		}
		return c.idempotent() || !unreachable.Sent
	}
	return c.idempotent() && hasStatus(err, http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout)
}

// delay returns the delay before the next attempt. It doubles with each attempt, has full jitter around its mean, and
// is at least the delay that MAAS requested.
func (c *Client) delay(attempt int, err error) time.Duration {
	policy := c.cfg.Retry
	mean := policy.BaseDelay << (attempt - 1)
	//nolint:gosec // It spreads calls in time, and no secret depends on it.
	return max(min(mean/2+rand.N(mean+1), policy.MaxDelay), RetryAfter(err))
}

func (c *Client) attempt(ctx context.Context, request call, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout(request))
	defer cancel()
	req, err := c.newRequest(ctx, request)
	if err != nil {
		return fmt.Errorf("cannot %s: %w", request.what, err)
	}
	start := c.cfg.Clock.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		err = c.unreachable(request, err, !failedToDial(err))
		c.observe(ctx, request, outcome{took: c.cfg.Clock.Since(start), err: err})
		return err
	}
	defer closeBody(resp.Body)
	err = c.read(request, resp, out)
	c.observe(ctx, request, outcome{code: resp.StatusCode, took: c.cfg.Clock.Since(start), out: out, err: err})
	return err
}

func (c *Client) timeout(request call) time.Duration {
	switch {
	case request.timeout > 0:
		return request.timeout
	case request.method == http.MethodGet:
		return c.cfg.ReadTimeout
	}
	return c.cfg.WriteTimeout
}

func (c *Client) newRequest(ctx context.Context, request call) (*http.Request, error) {
	if slices.ContainsFunc(strings.Split(request.path, "/"), func(s string) bool { return s == "." || s == ".." }) {
		return nil, fmt.Errorf(`building the URL: path segments of %s must not be "." or ".."`, request.path)
	}
	u, err := c.base.Parse(request.path)
	if err != nil {
		return nil, fmt.Errorf("building the URL: %w", err)
	}
	query := url.Values{}
	var body io.Reader
	if request.inBody() {
		body = strings.NewReader(request.params.Encode())
	} else {
		for key, values := range request.params {
			query[key] = values
		}
	}
	if request.op != "" {
		// All versions of MAAS accept op in the query.
		query.Set("op", request.op)
	}
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, request.method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	authorization, err := c.key.authorization(c.cfg.Clock.Now())
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", authorization)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req, nil
}

func (c *Client) read(request call, resp *http.Response, out any) error {
	body := &boundedReader{reader: resp.Body, left: c.maxBody(out)}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.readError(request, resp, body)
	}
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	err := decode(body, out)
	var tooLarge *tooLargeError
	var network net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLarge):
		return &UnreachableError{Operation: request.what, Endpoint: c.base.Host, Sent: true, Err: err}
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), resp.Request.Context().Err() != nil:
		return c.unreachable(request, fmt.Errorf("its answer broke off: %w", err), true)
	}
	return &EndpointError{Operation: request.what, Endpoint: c.base.Host, Done: true, Err: err}
}

func (c *Client) readError(request call, resp *http.Response, body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, 64<<10))
	if err != nil {
		text = nil // The status is sufficient.
	}
	if why := foreign(request, resp.StatusCode, resp.Header.Get("Content-Type"), strings.TrimSpace(string(text))); why != "" {
		return &EndpointError{Operation: request.what, Endpoint: c.base.Host, Err: fmt.Errorf("HTTP %d: %s", resp.StatusCode, c.key.scrub(shorten(why)))}
	}
	e := newError(request.what, resp.StatusCode, resp.Header.Get("Content-Type"), text, c.key)
	if location := resp.Header.Get("Location"); location != "" && resp.StatusCode < 400 {
		e.Message = "MAAS redirects to another URL, check the endpoint"
	}
	e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), c.cfg.Clock.Now())
	return e
}

func (c *Client) unreachable(request call, err error, sent bool) error {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		err = withURL.Err
	}
	var refused *RefusedAddressError
	if errors.As(err, &refused) {
		err = fmt.Errorf("%w%s", err, allowHint)
	}
	return &UnreachableError{Operation: request.what, Endpoint: c.base.Host, Sent: sent, Err: err}
}

// failedToDial reports that no byte of a call can have been sent.
func failedToDial(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns)
}

func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 3600)) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil && at.After(now) {
		return min(at.Sub(now), time.Hour)
	}
	return 0
}

// closeBody reads a short remainder of the answer, so that its connection can be reused.
func closeBody(body io.ReadCloser) {
	// Ignore errors: neither the remainder of an answer nor the close of its connection matters.
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}

// Raw returns the unparsed answer of a GET below "/api/2.0/", for objects without a type in this package.
func (c *Client) Raw(ctx context.Context, path string, params url.Values) (json.RawMessage, error) {
	var raw json.RawMessage
	err := c.do(ctx, call{name: "raw", what: "read " + path, method: http.MethodGet, path: path, params: params}, &raw)
	return raw, err
}
