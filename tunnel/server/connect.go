// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/openshift/hypershift/tunnel/frame"
)

// dialing is the timeout of a connection, as in the API server.
const dialing = 30 * time.Second

// errDraining is the answer of a server that ends.
var errDraining = errors.New("the server of the tunnel is ending")

// ServeAPI serves HTTP CONNECT to the API server until the context ends. It owns the listener.
func (s *Server) ServeAPI(ctx context.Context, listener net.Listener) error {
	return serve(ctx, listener, func(conn net.Conn) {
		client, ok := conn.(frame.Half)
		if !ok {
			_ = conn.Close()
			return
		}
		s.connect(context.WithoutCancel(ctx), conn, client)
	})
}

// connect serves one connection of the API server.
func (s *Server) connect(ctx context.Context, conn net.Conn, client frame.Half) {
	if !s.begin() {
		reply(conn, http.StatusServiceUnavailable, errDraining)
		return
	}
	defer s.end()
	_ = conn.SetReadDeadline(time.Now().Add(frame.Handshake))
	reader := bufio.NewReaderSize(conn, 1<<10)
	request, err := http.ReadRequest(reader)
	_ = conn.SetReadDeadline(time.Time{})
	if err != nil || request.Method != http.MethodConnect {
		reply(conn, http.StatusMethodNotAllowed, errors.New("use CONNECT"))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dialing)
	defer cancel()
	target, release, err := s.reach(ctx, request.Host)
	switch {
	case errors.Is(err, frame.ErrForbidden):
		s.metrics.dials.WithLabelValues("none", "forbidden").Inc()
		reply(conn, http.StatusForbidden, err)
		return
	case err != nil:
		reply(conn, http.StatusBadGateway, err)
		return
	}
	defer release()
	if _, err := conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")); err != nil || reader.Buffered() > 0 {
		_, _ = conn.Close(), target.Close()
		return
	}
	frame.Splice(client, target)
}

// reply answers with an error and closes the connection. The API server shows its client the status line, not the body.
func reply(conn net.Conn, status int, err error) {
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, err.Error())
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status, line)
	_ = conn.Close()
}

// reach connects to a host:port. The API server resolves the names of Services itself, so another name is that of a
// webhook outside the cluster, which is dialed directly.
func (s *Server) reach(ctx context.Context, address string) (conn frame.Half, release func(), err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, fmt.Errorf("destination %q is not a host with a port: %w", address, frame.ErrForbidden)
	}
	if _, err := netip.ParseAddr(host); err != nil {
		conn, err := s.direct(ctx, address)
		return conn, func() {}, err
	}
	destination, err := frame.Destination(address)
	if err != nil {
		return nil, nil, err
	}
	return s.dial(ctx, destination)
}

// permitted refuses connections of the default dialer to forbidden addresses, also if a name leads there.
func permitted(_, address string, _ syscall.RawConn) error {
	_, err := frame.Destination(address)
	return err
}

// dial connects through the most suitable agent, and directly if there is none. Agents pass on connections to the
// cluster network and to their own nodes alone: network policies of the management cluster decide about all others. The
// caller calls release when the connection ended.
func (s *Server) dial(ctx context.Context, destination netip.AddrPort) (conn frame.Half, release func(), err error) {
	var failures []error
	tried := map[*link]bool{}
	deadline := time.NewTimer(s.Wait)
	defer deadline.Stop()
	for {
		l, next := s.pool.best(destination.Addr(), !s.onlyThroughAgents(destination.Addr()), tried)
		if l == nil {
			if await(ctx, next, deadline.C) {
				continue
			}
			break
		}
		tried[l] = true
		if conn, release, err = s.through(ctx, l, destination); err == nil {
			return conn, release, nil
		}
		failures = append(failures, err)
		// A second opinion would only double the timeout.
		if refused := (refusal{}); errors.As(err, &refused) {
			return nil, nil, errors.Join(failures...)
		}
	}
	if len(failures) > 0 && s.onlyThroughAgents(destination.Addr()) {
		return nil, nil, errors.Join(failures...)
	}
	if conn, err = s.direct(ctx, destination.String()); err != nil {
		return nil, nil, errors.Join(append(failures, err)...)
	}
	return conn, func() {}, nil
}

// through connects through one agent.
func (s *Server) through(ctx context.Context, l *link, destination netip.AddrPort) (frame.Half, func(), error) {
	l.streams.Add(1)
	conn, err := l.connect(ctx, destination)
	if err != nil {
		l.streams.Add(-1)
		s.metrics.dials.WithLabelValues("agent", "failed").Inc()
		return nil, nil, err
	}
	s.metrics.dials.WithLabelValues("agent", "connected").Inc()
	tracked := &stream{Half: conn}
	l.open.Store(tracked, nil)
	return tracked, func() {
		l.open.Delete(tracked)
		l.streams.Add(-1)
	}, nil
}

// await waits until an agent connects. It returns false if none is expected, or none came in time.
func await(ctx context.Context, next <-chan struct{}, deadline <-chan time.Time) bool {
	if next == nil {
		return false
	}
	select {
	case <-next:
		return true
	case <-deadline:
	case <-ctx.Done():
	}
	return false
}

func (s *Server) onlyThroughAgents(ip netip.Addr) bool {
	return slices.ContainsFunc(s.ClusterNetworks, func(network netip.Prefix) bool { return network.Contains(ip) })
}

func (s *Server) direct(ctx context.Context, destination string) (frame.Half, error) {
	conn, err := s.Direct(ctx, "tcp", destination)
	if err != nil {
		s.metrics.dials.WithLabelValues("direct", "failed").Inc()
		return nil, fmt.Errorf("connecting to %s without an agent: %w", destination, err)
	}
	half, ok := conn.(frame.Half)
	if !ok {
		return nil, errors.Join(
			fmt.Errorf("connecting to %s without an agent: a %T has no two directions", destination, conn), conn.Close())
	}
	s.metrics.dials.WithLabelValues("direct", "connected").Inc()
	return half, nil
}
