// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

const content = "content"

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

// mirror answers the requests with the status codes in order, and repeats the last one indefinitely.
func mirror(t *testing.T, codes ...int) (server *httptest.Server, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(codes[min(int(asked.Add(1)), len(codes))-1])
		_, _ = io.WriteString(w, content)
	}))
	t.Cleanup(server.Close)
	return server, asked
}

func TestFile(t *testing.T) {
	const ok, busy, throttled, broken, absent = http.StatusOK, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusNotFound
	for name, tc := range map[string]struct {
		codes   []int
		wanted  string
		retries int
		asked   int
		fails   string
	}{
		"When the file exists, it should be fetched once":                  {[]int{ok}, sum(content), 2, 1, ""},
		"When the server is busy for a moment, it should retry":            {[]int{busy, throttled, ok}, sum(content), 2, 3, ""},
		"When the server stays busy, it should give up after the retries":  {[]int{busy}, sum(content), 2, 3, "the server answered 503"},
		"When there are no retries, it should fail at the first error":     {[]int{broken, ok}, sum(content), 0, 1, "the server answered 502"},
		"When the file does not exist, it should not retry":                {[]int{absent, ok}, sum(content), 2, 1, "the server answered 404"},
		"When the checksum does not match, it should not retry":            {[]int{ok}, sum("other"), 2, 1, "SHA-256 mismatch: got " + sum(content) + ", want " + sum("other")},
		"When an error page matches the checksum, it should not accept it": {[]int{absent}, sum(content), 0, 1, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server, asked := mirror(t, tc.codes...)
			target := filepath.Join(t.TempDir(), "file")
			err := (&Getter{Client: server.Client(), Retries: tc.retries}).File(t.Context(), server.URL, target, tc.wanted)
			g.Expect(asked.Load()).To(BeEquivalentTo(tc.asked))
			left, globErr := filepath.Glob(target + "*")
			g.Expect(globErr).NotTo(HaveOccurred())
			if tc.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fails)))
				g.Expect(left).To(BeEmpty())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(left).To(Equal([]string{target}))
			g.Expect(Verify(target, tc.wanted)).To(Succeed())
		})
	}
}

func TestMode(t *testing.T) {
	server, _ := mirror(t, http.StatusOK)
	for given, want := range map[os.FileMode]os.FileMode{0: 0o600, 0o640: 0o640} {
		t.Run("When the mode is "+given.String()+", it should create the file with mode "+want.String(), func(t *testing.T) {
			g := NewWithT(t)
			target := filepath.Join(t.TempDir(), "file")
			g.Expect((&Getter{Client: server.Client(), Mode: given}).File(t.Context(), server.URL, target, sum(content))).To(Succeed())
			info, err := os.Stat(target)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Mode()).To(Equal(want))
		})
	}
}

// tries counts the requests of a client. A request does not always reach the server if the client cancels it early.
type tries struct {
	http.RoundTripper
	count int
}

// RoundTrip implements http.RoundTripper.
func (t *tries) RoundTrip(request *http.Request) (*http.Response, error) {
	t.count++
	return t.RoundTripper.RoundTrip(request)
}

// TestStalledServer uses a server that stops before or during its answer, and sends nothing until the client
// disconnects.
func TestStalledServer(t *testing.T) {
	for name, begin := range map[string]string{"When a server takes the request and says nothing, it should stop waiting": "", "When a server stops in the middle, it should stop waiting": "half"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if begin != "" {
					_, _ = io.WriteString(w, begin)
					w.(http.Flusher).Flush()
				}
				<-r.Context().Done()
			}))
			t.Cleanup(server.Close)
			target := filepath.Join(t.TempDir(), "file")
			asked := &tries{RoundTripper: server.Client().Transport}
			getter := &Getter{Client: &http.Client{Transport: asked}, Silence: 100 * time.Millisecond, Retries: 1}
			g.Expect(getter.File(t.Context(), server.URL, target, strings.Repeat("0", 64))).To(MatchError("the server has sent nothing for 100ms"))
			g.Expect(asked.count).To(Equal(2), "the silence of one try is none of the next one's")
			g.Expect(os.ReadDir(filepath.Dir(target))).To(BeEmpty())
		})
	}
}

func TestEnds(t *testing.T) {
	// Each call uses its own server: a slow server may count a request after its client has disconnected.
	get := func(ctx context.Context, getter Getter) (asked *atomic.Int64, err error) {
		server, asked := mirror(t, http.StatusServiceUnavailable)
		getter.Client = server.Client()
		return asked, getter.Get(ctx, server.URL, func(io.Reader) error { return nil })
	}
	t.Run("When the time limit of all tries expires, it should stop waiting for the next one", func(t *testing.T) {
		g := NewWithT(t)
		asked, err := get(t.Context(), Getter{Retries: 1, Pause: time.Hour, Limit: 100 * time.Millisecond})
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		g.Expect(asked.Load()).To(BeNumerically("<=", 1))
	})
	t.Run("When the caller cancels, it should stop waiting for the next try", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := get(ctx, Getter{Retries: 1, Pause: time.Hour})
		NewWithT(t).Expect(err).To(MatchError(context.Canceled))
	})
	t.Run("When HTTPS is required, it should send no request over plain HTTP", func(t *testing.T) {
		g := NewWithT(t)
		asked, err := get(t.Context(), Getter{Secure: true})
		g.Expect(err).To(MatchError(ContainSubstring("use https")))
		g.Expect(asked.Load()).To(BeZero())
	})
}

// slow sends one byte after each pause.
type slow struct {
	pause time.Duration
	left  int
	ctx   context.Context
}

// RoundTrip implements http.RoundTripper.
func (s *slow) RoundTrip(request *http.Request) (*http.Response, error) {
	s.ctx = request.Context()
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(s)}, nil
}

// Read implements io.Reader.
func (s *slow) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.pause):
		s.left--
		return copy(p, "x"), nil
	}
}

func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		server := &slow{pause: 50 * time.Second, left: 10}
		getter := &Getter{Client: &http.Client{Transport: server}, Silence: time.Minute}
		target := filepath.Join(t.TempDir(), "file")
		g.Expect(getter.File(t.Context(), "http://slow.example.com", target, sum(strings.Repeat("x", 10)))).To(Succeed(), "a server that says a little now and then is not silent")
	})
}
