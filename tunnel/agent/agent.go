// SPDX-License-Identifier: Apache-2.0

// Package agent is the end of the tunnel on a node. It dials the servers beside the API servers, and connects their
// streams to the cluster network.
package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/openshift/hypershift/tunnel/frame"
)

const (
	// firstRetry and lastRetry bound the time between two attempts to reach a server.
	firstRetry, lastRetry = 100 * time.Millisecond, 30 * time.Second
	// refresh is the interval at which the networks of the node are read again.
	refresh = 5 * time.Second
	// dialing is the timeout of a connection to a destination.
	dialing = 20 * time.Second
)

// Config configures an Agent.
type Config struct {
	// Addresses are the host:port at which the servers are published. Attempts to connect take turns. Behind each of
	// them, a load balancer chooses the server.
	Addresses []string
	// TLS returns the configuration of the next connection, so that renewed certificates are used.
	TLS func() (*tls.Config, error)
	// ClusterNetworks are the networks of pods and Services. The agent connects to them and to Networks alone.
	ClusterNetworks []netip.Prefix
	// Networks returns the networks whose addresses are on this node; see NodeNetworks.
	Networks func() ([]netip.Prefix, error)
	// Dial reaches the servers and destinations; nil for a dialer of this host.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Grace is how long Run waits for open streams after its context ended.
	Grace time.Duration
	// Log receives what happens.
	Log logr.Logger
}

// Agent connects a node to the servers.
type Agent struct {
	Config

	// streams counts the open streams.
	streams counter
	// draining reports that the agent ends after the open streams.
	draining atomic.Bool

	mu sync.Mutex
	// links are the connections by the server's ID; a draining server has none.
	links map[string]*link
	// all has each open connection, also those of draining servers.
	all map[*link]struct{}
	// servers is the number of servers that was last reported.
	servers int
	// attempts counts the attempts to connect.
	attempts int
	// lost wakes Run up after a connection ended.
	lost chan struct{}
}

// link is a connection to a server.
type link struct {
	session *frame.Session
	control *frame.Stream
	sending sync.Mutex
	id      string
}

// report tells the server the networks of the node. A report that says that the agent drains is the last one.
func (a *Agent) report(l *link, networks []netip.Prefix) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	return frame.Write(l.control, frame.Agent{Networks: networks, Draining: a.draining.Load()})
}

// New returns an Agent without connections.
func New(config Config) *Agent {
	if config.Dial == nil {
		config.Dial = (&net.Dialer{}).DialContext
	}
	return &Agent{
		Config: config, links: map[string]*link{}, all: map[*link]struct{}{}, servers: 1, lost: make(chan struct{}, 1),
	}
}

// Servers returns the IDs of the servers to which the agent is connected, sorted.
func (a *Agent) Servers() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := make([]string, 0, len(a.links))
	for id := range a.links {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Run keeps connections to all servers until the context ends. It then lets servers prefer other agents, and returns
// when the open streams ended, at the latest after the grace period.
func (a *Agent) Run(ctx context.Context) error {
	updates, stop := context.WithCancel(ctx)
	defer stop()
	go a.update(updates)
	retry := firstRetry
	for ctx.Err() == nil {
		wait := lastRetry
		if a.incomplete() {
			address := a.Addresses[a.attempts%len(a.Addresses)]
			a.attempts++
			fresh, err := a.connect(ctx, address)
			if err != nil && ctx.Err() == nil {
				a.Log.Info("Cannot connect to the API server's end of the tunnel", "address", address, "reason", err.Error())
			}
			if fresh {
				retry = firstRetry
				continue
			}
			wait, retry = retry, min(2*retry, lastRetry)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.lost:
			retry = firstRetry
		}
		timer.Stop()
	}
	return a.drain()
}

func (a *Agent) incomplete() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.links) < a.servers
}

// connect makes one connection. fresh reports whether it reached a server that had none. The load balancer chooses the
// server.
func (a *Agent) connect(ctx context.Context, address string) (fresh bool, err error) {
	config, err := a.TLS()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, frame.Handshake)
	defer cancel()
	conn, err := a.Dial(ctx, "tcp", address)
	if err != nil {
		return false, err
	}
	session, err := frame.Dial(ctx, conn, config)
	if err != nil {
		return false, err
	}
	l, report, err := a.greet(session)
	if err != nil {
		session.Abort()
		return false, err
	}
	if !a.add(l, report) {
		session.Abort()
		return false, nil
	}
	a.Log.Info("Connected to the API server's end of the tunnel", "server", report.ID, "address", session.Remote())
	go a.follow(l)
	go a.serve(session)
	return true, nil
}

// greet exchanges the first reports.
func (a *Agent) greet(session *frame.Session) (*link, frame.Server, error) {
	networks, err := a.Networks()
	if err != nil {
		return nil, frame.Server{}, err
	}
	late := time.AfterFunc(frame.Handshake, session.Abort)
	defer late.Stop()
	control, err := session.Open()
	if err != nil {
		return nil, frame.Server{}, err
	}
	l, report := &link{session: session, control: control}, frame.Server{}
	if err := a.report(l, networks); err != nil {
		return nil, report, err
	}
	err = frame.Read(control, &report)
	l.id = report.ID
	return l, report, err
}

// add records a connection. It returns false if it is not needed.
func (a *Agent) add(l *link, report frame.Server) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.servers = max(1, report.Servers)
	if report.Draining || a.links[l.id] != nil {
		return false
	}
	a.links[l.id], a.all[l] = l, struct{}{}
	return true
}

// follow reads the reports of a server until the connection ends.
func (a *Agent) follow(l *link) {
	for {
		report := frame.Server{}
		if err := frame.Read(l.control, &report); err != nil {
			l.session.Abort()
			a.remove(l, true)
			a.Log.Info("Lost a connection of the tunnel", "server", l.id, "reason", err.Error())
			return
		}
		if report.Draining {
			a.remove(l, false)
		}
	}
}

// remove looks for another server in place of one that ended or drains. A draining server keeps its streams.
func (a *Agent) remove(l *link, ended bool) {
	a.mu.Lock()
	if a.links[l.id] == l {
		delete(a.links, l.id)
	}
	if ended {
		delete(a.all, l)
	}
	a.mu.Unlock()
	select {
	case a.lost <- struct{}{}:
	default:
	}
}

// update reports the networks of the node when they change: the network of its pods appears with the first pod.
func (a *Agent) update(ctx context.Context) {
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	said := map[*link]string{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		networks, err := a.Networks()
		if err != nil {
			a.Log.Info("Cannot read the networks of this node", "reason", err.Error())
			continue
		}
		next := map[*link]string{}
		for _, l := range a.open() {
			if next[l] = fmt.Sprint(networks); said[l] != next[l] {
				_ = a.report(l, networks) // follow notices a broken connection.
			}
		}
		said = next
	}
}

func (a *Agent) open() []*link {
	a.mu.Lock()
	defer a.mu.Unlock()
	links := make([]*link, 0, len(a.all))
	for l := range a.all {
		links = append(links, l)
	}
	return links
}

// drain waits for the open streams. New ones are still served: this may be the only agent.
func (a *Agent) drain() error {
	a.draining.Store(true)
	networks, err := a.Networks()
	for _, l := range a.open() {
		_ = a.report(l, networks) // The server of a broken connection notices it.
	}
	limit := time.Now().Add(a.Grace)
	ended := a.streams.wait(time.Until(limit))
	for _, l := range a.open() {
		_ = l.session.Refuse()
	}
	ended = a.streams.wait(time.Until(limit)) && ended
	for _, l := range a.open() {
		l.session.Abort()
	}
	if !ended {
		err = errors.Join(err, fmt.Errorf("streams of the tunnel were open after %s", a.Grace))
	}
	return err
}
