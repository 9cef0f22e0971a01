// SPDX-License-Identifier: Apache-2.0

package imageregistry

import (
	"errors"
	"io"
	"net/http"
	"strings"
)

// ErrPlainHTTP reports a request without TLS that was not sent. The request would reveal the pull secret, and anyone on
// the network path could answer it.
var ErrPlainHTTP = errors.New("plain HTTP is refused; serve the registry with HTTPS")

// MaxMetadata is the maximum size in bytes of manifests, configurations, tokens and all other answers except layers.
const MaxMetadata = 4 << 20

// checked sends requests only by HTTPS, and limits the size of answers that are not layers.
type checked struct {
	next      http.RoundTripper
	plainHTTP bool
}

// RoundTrip implements http.RoundTripper.
func (c *checked) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && !c.plainHTTP {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, ErrPlainHTTP
	}
	answer, err := c.next.RoundTrip(request)
	if err != nil || isBlob(request) {
		return answer, err
	}
	answer.Body = &metadataBody{ReadCloser: answer.Body, left: MaxMetadata, failure: tooLarge(request)}
	return answer, nil
}

func tooLarge(request *http.Request) error {
	return refuse("the registry's answer to %s is larger than %d bytes", request.URL.Path, MaxMetadata)
}

// isBlob reports whether a request reads a layer or a configuration, or was redirected from such a request. Layers and
// configurations are limited by Bound and ConfigFile, and verified against the digest in the manifest.
func isBlob(request *http.Request) bool {
	for ; request != nil; request = before(request) {
		if strings.Contains(request.URL.Path, "/blobs/") {
			return true
		}
	}
	return false
}

func before(request *http.Request) *http.Request {
	if request.Response == nil {
		return nil
	}
	return request.Response.Request
}

// metadataBody is a body whose reader fails if the body exceeds the limit.
type metadataBody struct {
	io.ReadCloser
	left    int64
	failure error
}

// Read implements io.Reader.
func (m *metadataBody) Read(p []byte) (int, error) {
	if int64(len(p)) > m.left+1 {
		p = p[:m.left+1]
	}
	n, err := m.ReadCloser.Read(p)
	if int64(n) > m.left {
		n, m.left = int(m.left), 0
		return n, m.failure
	}
	m.left -= int64(n)
	return n, err
}
