// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
)

var errCut = errors.New("the wire is cut")

// wire is the transport to MAAS. It records the calls that change something, and a test can cut it.
type wire struct {
	mu     sync.Mutex
	writes []call
	// before runs before a call is sent, after runs before its answer is returned. An error from either cuts the
	// connection. op names the call.
	before, after func(op string) error
	direct        http.RoundTripper
}

// call is a recorded call that changes something.
type call struct {
	op   string
	form url.Values
}

func newWire(t *testing.T) *wire {
	direct := http.DefaultTransport.(*http.Transport).Clone()
	direct.Proxy = nil
	t.Cleanup(direct.CloseIdleConnections)
	return &wire{direct: direct}
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return w.direct.RoundTrip(r)
	}
	op := r.URL.Query().Get("op")
	form, err := formOf(r)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	before, after := w.before, w.after
	w.writes = append(w.writes, call{op, form})
	w.mu.Unlock()
	if before != nil {
		if err := before(op); err != nil {
			return nil, err
		}
	}
	response, err := w.direct.RoundTrip(r)
	if after != nil && err == nil {
		if cut := after(op); cut != nil {
			_ = response.Body.Close()
			return nil, cut
		}
	}
	return response, err
}

func formOf(r *http.Request) (url.Values, error) {
	if r.GetBody == nil {
		return nil, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	return url.ParseQuery(string(text))
}

// wrote returns the ops of the calls that changed something since wrote was last called.
func (w *wire) wrote() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ops []string
	for _, c := range w.writes {
		ops = append(ops, c.op)
	}
	w.writes = nil
	return ops
}

// count returns the number of calls of an operation since the last call of wrote.
func (w *wire) count(op string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.writes {
		if c.op == op {
			n++
		}
	}
	return n
}

// sent returns the form of the last call of an op, or nil if there was none since wrote was last called.
func (w *wire) sent(op string) url.Values {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range slices.Backward(w.writes) {
		if c.op == op {
			return c.form
		}
	}
	return nil
}

// once calls do before the first call of an op.
func (w *wire) once(op string, do func()) {
	var first sync.Once
	w.before = func(called string) error {
		if called == op {
			first.Do(do)
		}
		return nil
	}
}
