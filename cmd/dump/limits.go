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

// What one cluster may send. Its API server may be a tenant's: it must not fill memory or disk, nor keep the command
// waiting.
const (
	callTimeout = 30 * time.Second
	// maxTime bounds the collection of one cluster.
	maxTime = 30 * time.Minute
	// maxAnswer bounds one answer, in bytes, and pageSize how many objects are asked for at once.
	maxAnswer, pageSize = 32 << 20, 500
	// maxPages and maxList (bytes) bound the objects of one kind in one namespace, which are in memory together.
	maxPages, maxList = 100, 128 << 20
	// maxTotal bounds the files of one cluster, in bytes.
	maxTotal = 4 << 30
	// maxResources bounds the kinds of one cluster, and maxFailures the lines about what was not collected.
	maxResources, maxFailures = 2_000, 2_000
	// maxLogLines and maxLogBytes bound the log of one container.
	maxLogLines, maxLogBytes = 20_000, 16 << 20
)

// errRedirect keeps the credentials from where an API server points.
var errRedirect = errors.New("the API server redirects to another URL, which is not followed")

// bounded returns a configuration whose clients follow no redirect and fail on answers beyond maxAnswer. Received
// counts the bytes of all answers.
func bounded(config *rest.Config, received *atomic.Int64) *rest.Config {
	config = rest.CopyConfig(config)
	config.Timeout = callTimeout
	// A dump is some thousand small reads, and a person waits for it.
	config.QPS, config.Burst = 200, 400
	// Reading all that there is means reading what is deprecated too.
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &limits{next: next, received: received} })
	return config
}

// limits bounds what an API server answers.
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

// limitedBody fails, unlike io.LimitReader, when there is more than its bound.
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
