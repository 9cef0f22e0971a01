// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

const (
	// Handshake is the timeout of a TLS handshake and of the first messages.
	Handshake = 5 * time.Second
	// tick and silence decide when a peer counts as gone: nothing arrived for silence ticks, although each tick asks for
	// an answer. Ticks are counted instead of the time, so that a process that did not run for a while does not give up
	// a working connection.
	tick    = 400 * time.Millisecond
	silence = 5
	// lingering is how long a stream stays half closed.
	lingering = 30 * time.Second
	// window is the number of unread bytes of a stream after which its sender waits.
	window = 512 << 10
)

// ErrPeerSilent is the cause of the end of a session whose peer no longer answers.
var ErrPeerSilent = errors.New("the other end of the tunnel no longer answers")

// Session is a connection between an agent and a server.
type Session struct {
	mux *yamux.Session
	tls *tls.Conn
	raw *observed
	// silent reports that the session ended because its peer did not answer.
	silent atomic.Bool
}

// observed counts whether bytes arrive.
type observed struct {
	net.Conn

	arrived atomic.Bool
}

func (o *observed) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	if n > 0 {
		o.arrived.Store(true)
	}
	return n, err
}

// Dial makes a session on a connection to a server. It owns the connection.
func Dial(ctx context.Context, conn net.Conn, config *tls.Config) (*Session, error) {
	raw := &observed{Conn: conn}
	return open(ctx, raw, tls.Client(raw, config), yamux.Client)
}

// Accept makes a session on a connection of an agent. It owns the connection.
func Accept(ctx context.Context, conn net.Conn, config *tls.Config) (*Session, error) {
	raw := &observed{Conn: conn}
	return open(ctx, raw, tls.Server(raw, config), yamux.Server)
}

// role makes one of the two ends of a multiplexed connection.
type role func(io.ReadWriteCloser, *yamux.Config) (*yamux.Session, error)

func open(ctx context.Context, raw *observed, secure *tls.Conn, end role) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, Handshake)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("TLS handshake of the tunnel with %s: %w", raw.RemoteAddr(), err), raw.Close())
	}
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = false // Session.watch detects a silent peer sooner, and not while it sends.
	config.ConnectionWriteTimeout = 30 * time.Second
	config.StreamCloseTimeout = lingering
	config.MaxStreamWindowSize = window
	config.LogOutput = io.Discard
	mux, err := end(secure, config)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("multiplexing the tunnel with %s: %w", raw.RemoteAddr(), err), raw.Close())
	}
	s := &Session{mux: mux, tls: secure, raw: raw}
	go s.watch()
	return s, nil
}

// watch ends the session when its peer is silent.
func (s *Session) watch() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	asking := make(chan struct{}, 1)
	for quiet := 0; quiet < silence; quiet++ {
		select {
		case <-s.mux.CloseChan():
			return
		case <-ticker.C:
		}
		if s.raw.arrived.Swap(false) {
			quiet = -1
		}
		select {
		case asking <- struct{}{}:
			go func() {
				_, _ = s.mux.Ping() // Only the bytes of the answer matter.
				<-asking
			}()
		default:
		}
	}
	s.silent.Store(true)
	s.Abort()
}

// Open opens a stream.
func (s *Session) Open() (*Stream, error) {
	stream, err := s.mux.OpenStream()
	if err != nil {
		return nil, fmt.Errorf("opening a stream of the tunnel: %w", s.cause(err))
	}
	return &Stream{stream}, nil
}

// Accept waits for a stream of the peer. It returns an error when the session ended.
func (s *Session) Accept() (*Stream, error) {
	stream, err := s.mux.AcceptStream()
	if err != nil {
		return nil, fmt.Errorf("waiting for a stream of the tunnel: %w", s.cause(err))
	}
	return &Stream{stream}, nil
}

func (s *Session) cause(err error) error {
	if s.silent.Load() {
		return ErrPeerSilent
	}
	return err
}

// Done is closed when the session ended.
func (s *Session) Done() <-chan struct{} { return s.mux.CloseChan() }

// State returns the TLS state, with the certificate of the peer.
func (s *Session) State() tls.ConnectionState { return s.tls.ConnectionState() }

// Remote returns the address of the peer.
func (s *Session) Remote() string { return s.raw.RemoteAddr().String() }

// Refuse makes the peer open no more streams. Those that are open stay.
func (s *Session) Refuse() error { return s.mux.GoAway() }

// Abort ends the session and its streams without waiting for the peer.
func (s *Session) Abort() {
	// First the connection: TLS would wait for a peer that reads nothing.
	_ = s.raw.Close()
	_ = s.mux.Close()
}

// Stream is one stream of a session.
type Stream struct {
	*yamux.Stream
}

// CloseWrite tells the peer that no more bytes follow. The stream can still be read, for 30 seconds.
func (s *Stream) CloseWrite() error { return s.Stream.Close() }

// Close ends the stream in both directions.
func (s *Stream) Close() error {
	err := s.Stream.Close()
	return errors.Join(err, s.SetReadDeadline(time.Now()))
}
