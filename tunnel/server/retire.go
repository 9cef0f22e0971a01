// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/openshift/hypershift/tunnel/frame"
)

const (
	// quiet is how long a connection has nothing to say after an answer until it may be closed.
	quiet = 20 * time.Millisecond
	// look is the interval at which connections of an agent that ends are checked.
	look = 5 * time.Millisecond
)

// stream is a connection through an agent. It knows whether its last bytes were an answer of the destination.
type stream struct {
	frame.Half

	// answered is when the last bytes arrived, in nanoseconds; zero if bytes were sent since.
	answered atomic.Int64
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Half.Read(p)
	if n > 0 {
		s.answered.Store(time.Now().UnixNano())
	}
	return n, err
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	s.answered.Store(0)
	return s.Half.Write(p)
}

// idle reports whether nothing was sent since the last answer, for a moment.
func (s *stream) idle() bool {
	answered := s.answered.Load()
	return answered != 0 && time.Since(time.Unix(0, answered)) > quiet
}

// retire closes the connections of an agent that ends, each while it is idle. The API server keeps connections to
// webhooks, and would lose a request that was not answered yet. Its next request opens a connection through another
// agent. Connections stay open for a while at first, because users cannot continue theirs.
func (s *Server) retire(ctx context.Context, l *link) {
	timer := time.NewTimer(s.Retire)
	defer timer.Stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	case <-l.session.Done():
		return
	}
	for {
		l.open.Range(func(key, _ any) bool {
			if open, ok := key.(*stream); ok && open.idle() {
				_ = open.Close()
			}
			return true
		})
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		case <-l.session.Done():
			return
		}
	}
}
