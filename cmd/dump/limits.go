// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Limits for the data of one cluster. Its API server may be under a tenant's control: it must not fill memory or disk,
// nor block the command.
const (
	callTimeout = 30 * time.Second
	// maxTime limits the collection of one cluster.
	maxTime = 30 * time.Minute
	// maxAnswer limits one response, in bytes; pageSize is the number of objects in one request.
	maxAnswer, pageSize = 32 << 20, 500
	// maxPages and maxList (bytes) limit the objects of one kind in one namespace, which are in memory at the same time.
	maxPages, maxList = 100, 128 << 20
	// maxTotal limits the files of one cluster, in bytes.
	maxTotal = 4 << 30
	// maxResources limits the kinds of one cluster; maxFailures limits the lines about what was not collected.
	maxResources, maxFailures = 2_000, 2_000
	// maxLogLines and maxLogBytes limit the log of one container.
	maxLogLines, maxLogBytes = 20_000, 16 << 20
)

// errRedirect stops redirects, so that the credentials are not sent to a URL that an API server chooses.
var errRedirect = errors.New("the API server redirects to another URL, which is not followed")

// bounded returns a configuration whose clients follow no redirect and fail on responses larger than maxAnswer.
// received counts the bytes of all responses.
func bounded(config *rest.Config, received *atomic.Int64) *rest.Config {
	config = rest.CopyConfig(config)
	config.Timeout = callTimeout
	// A dump consists of some thousand small reads, and the user waits for it.
	config.QPS, config.Burst = 200, 400
	// The dump also reads deprecated APIs, since it reads all of them.
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &limits{next: next, received: received} })
	return config
}

// limits limits the responses of an API server.
type limits struct {
	next     http.RoundTripper
	received *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (l *limits) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 && answer.StatusCode < 400 && answer.Header.Get("Location") != "" {
		return nil, errors.Join(errRedirect, answer.Body.Close())
	}
	answer.Body = &limitedBody{ReadCloser: answer.Body, left: maxAnswer, received: l.received}
	return answer, nil
}

// limitedBody fails on a body above its limit; io.LimitReader would truncate it silently.
type limitedBody struct {
	io.ReadCloser
	left     int64
	received *atomic.Int64
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.received.Add(int64(n))
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer of the API server is larger than %d bytes", maxAnswer)
	}
	return n, err
}
