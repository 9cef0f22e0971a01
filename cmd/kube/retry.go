// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"io"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Retries is how often a command repeats a request that failed for a reason which passes.
const Retries = 5

// firstPause is the pause before the first retry. It doubles for each further one: six seconds in total.
const firstPause = 200 * time.Millisecond

// Pause waits before a retry, the first of which is 0. It returns an error if the context ends.
func Pause(ctx context.Context, retry int) error {
	timer := time.NewTimer(firstPause << retry)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// retrying repeats requests that an API server could not answer: it restarts, is overloaded, or a load balancer in
// front of it moves. It leaves to client-go what client-go repeats: responses with Retry-After, and reads whose
// connection was lost.
type retrying struct {
	next  http.RoundTripper
	pause func(ctx context.Context, retry int) error
}

// RoundTrip implements http.RoundTripper.
func (r *retrying) RoundTrip(req *http.Request) (*http.Response, error) {
	for retry := 0; ; retry++ {
		response, err := r.next.RoundTrip(req)
		if retry == Retries || !passes(req, response, err) {
			return response, err
		}
		again := req.Clone(req.Context())
		if req.GetBody != nil {
			body, bodyErr := req.GetBody()
			if bodyErr != nil {
				return response, err
			}
			again.Body = body
		}
		if r.pause(req.Context(), retry) != nil {
			return response, err
		}
		if response != nil {
			discard(response.Body)
		}
		req = again
	}
}

// passes reports whether a request can be repeated, and may succeed then. A create request that the server may have
// carried out is not repeated: objects.Create does that, since it knows the object.
func passes(req *http.Request, response *http.Response, err error) bool {
	create := req.Method == http.MethodPost && req.URL.Query().Get("dryRun") == ""
	switch {
	case req.Body != nil && req.GetBody == nil, req.Header.Get("Upgrade") != "":
		return false
	case err != nil:
		return !create && req.Method != http.MethodGet && ConnectionLost(err)
	case response.Header.Get("Retry-After") != "":
		return false
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return !create
	}
	return false
}

// ConnectionLost reports whether the connection ended before the response. The server may have carried out the request.
func ConnectionLost(err error) bool {
	return utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// discard reads the rest of a short response, so that its connection can be used again.
func discard(body io.ReadCloser) {
	const longest = 64 << 10
	_, _ = io.Copy(io.Discard, io.LimitReader(body, longest))
	_ = body.Close()
}
