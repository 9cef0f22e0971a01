// SPDX-License-Identifier: Apache-2.0

// Package server is the end of the tunnel beside an API server. The API server asks for connections with HTTP CONNECT
// on a Unix socket. The server passes each of them to an agent that dials from its node.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/openshift/hypershift/tunnel/frame"
)

const (
	// nodeUser and nodeGroup are the user and the group in the certificates of nodes.
	nodeUser  = "system:node:"
	nodeGroup = "system:nodes"
)

// Config configures a Server.
type Config struct {
	// ID identifies the server in the cluster.
	ID string
	// Servers is the number of servers of the cluster.
	Servers int
	// TLS must require and verify the certificate of a client.
	TLS *tls.Config
	// ClusterNetworks are the networks of pods and Services. They are not reached without an agent once one connected.
	ClusterNetworks []netip.Prefix
	// Direct dials while no agent is connected; nil for a dialer of this host.
	Direct func(ctx context.Context, network, address string) (net.Conn, error)
	// Wait is how long a connection waits for an agent if the last one left a moment ago; zero for 5 seconds.
	Wait time.Duration
	// Retire is how long connections through an agent that ends are left alone; zero for 10 seconds.
	Retire time.Duration
	// Metrics registers the metrics; nil for none.
	Metrics prometheus.Registerer
	// Log receives what happens.
	Log logr.Logger
}

// Server connects an API server with the agents.
type Server struct {
	Config

	pool    pool
	metrics *metrics
	streams sync.WaitGroup
	// mu guards drained and the addition to streams: both must not change while Drain begins to wait.
	mu      sync.Mutex
	drained bool
}

// New returns a Server without agents.
func New(config Config) *Server {
	if config.Direct == nil {
		config.Direct = (&net.Dialer{Control: permitted}).DialContext
	}
	if config.Wait == 0 {
		config.Wait = 5 * time.Second
	}
	if config.Retire == 0 {
		config.Retire = 10 * time.Second
	}
	s := &Server{Config: config, pool: pool{changed: make(chan struct{})}}
	s.metrics = newMetrics(config.Metrics, &s.pool)
	return s
}

// Agents returns the names of the nodes whose agents are connected, with one entry for each connection.
func (s *Server) Agents() []string { return s.pool.nodes() }

// ServeAgents accepts agents until the context ends. It owns the listener.
func (s *Server) ServeAgents(ctx context.Context, listener net.Listener) error {
	return serve(ctx, listener, func(conn net.Conn) {
		if err := s.serveAgent(ctx, conn); err != nil {
			s.Log.Info("Refused a connection to the tunnel", "remote", conn.RemoteAddr().String(), "reason", err.Error())
			s.metrics.refused.Inc()
		}
	})
}

// serve calls handle for each connection in a goroutine of its own.
func serve(ctx context.Context, listener net.Listener, handle func(net.Conn)) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accepting connections on %s: %w", listener.Addr(), err)
		case err != nil:
			// The process has no file descriptor left, or the client already closed the connection.
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		default:
			go handle(conn)
		}
	}
}

// serveAgent serves one agent. It returns an error if the agent was never usable.
func (s *Server) serveAgent(ctx context.Context, conn net.Conn) error {
	session, err := frame.Accept(ctx, conn, s.TLS)
	if err != nil {
		return err
	}
	defer session.Abort()
	node, err := nodeOf(session.State())
	if err != nil {
		return err
	}
	late := time.AfterFunc(frame.Handshake, session.Abort)
	defer late.Stop()
	control, err := session.Accept()
	if err != nil {
		return err
	}
	a := &link{node: node, session: session, control: control}
	if err := a.receive(); err != nil {
		return err
	}
	late.Stop()
	if err := a.send(s.report()); err != nil {
		return err
	}
	s.pool.add(a)
	s.Log.Info("Agent connected", "node", node, "remote", session.Remote())
	// A server that began to drain after the report must not be missed.
	if s.draining() {
		_ = a.send(s.report())
	}
	for err = a.receive(); err == nil; err = a.receive() {
		s.pool.notify()
		if a.said.Load().Draining && !a.retiring {
			a.retiring = true
			go s.retire(ctx, a)
		}
	}
	s.pool.remove(a)
	s.Log.Info("Agent disconnected", "node", node, "reason", err.Error())
	return nil
}

func (s *Server) report() frame.Server {
	return frame.Server{ID: s.ID, Servers: s.Servers, Draining: s.draining()}
}

func (s *Server) draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drained
}

// nodeOf returns the node in the verified certificate of an agent.
func nodeOf(state tls.ConnectionState) (string, error) {
	if len(state.VerifiedChains) == 0 {
		return "", errors.New("the agent has no verified certificate")
	}
	subject := state.PeerCertificates[0].Subject
	name, ok := strings.CutPrefix(subject.CommonName, nodeUser)
	if !ok || name == "" || len(subject.Organization) != 1 || subject.Organization[0] != nodeGroup {
		return "", fmt.Errorf("the certificate of %q is not one of a node", subject.CommonName)
	}
	return name, nil
}

// begin counts a new stream. It returns false if the server drains.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained {
		return false
	}
	s.streams.Add(1)
	s.metrics.streams.Inc()
	return true
}

func (s *Server) end() {
	s.metrics.streams.Dec()
	s.streams.Done()
}

// Drain tells the agents to use other servers, accepts no new streams, and waits until the open ones ended or the
// context ends.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.drained = true
	s.mu.Unlock()
	for _, a := range s.pool.all() {
		_ = a.send(s.report()) // The agent of a broken connection notices it.
	}
	done := make(chan struct{})
	go func() {
		s.streams.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the open streams of the tunnel: %w", context.Cause(ctx))
	}
}
