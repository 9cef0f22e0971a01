// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openshift/hypershift/tunnel/frame"
)

// recently is how long after the last agent left the next one is expected.
const recently = 30 * time.Second

// link is the connection of an agent.
type link struct {
	node    string
	session *frame.Session
	control *frame.Stream
	sending sync.Mutex
	said    atomic.Pointer[frame.Agent]
	streams atomic.Int64
	// open has the connections through the agent, each a *stream.
	open sync.Map
	// retiring reports that the agent said that it ends.
	retiring bool
}

// receive waits for the next report of the agent.
func (l *link) receive() error {
	said := &frame.Agent{}
	if err := frame.Read(l.control, said); err != nil {
		return err
	}
	l.said.Store(said)
	return nil
}

func (l *link) send(report frame.Server) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	return frame.Write(l.control, report)
}

func (l *link) near(ip netip.Addr) bool {
	return slices.ContainsFunc(l.said.Load().Networks, func(network netip.Prefix) bool { return network.Contains(ip) })
}

// rank orders agents for a destination: those on its node, then those that will stay, then those with few streams.
func (l *link) rank(ip netip.Addr) int64 {
	rank := l.streams.Load()
	if !l.near(ip) {
		rank += 1 << 32
	}
	if l.said.Load().Draining {
		rank += 1 << 33
	}
	return rank
}

// refusal is the answer of an agent that did not reach the destination.
type refusal struct{ message string }

func (r refusal) Error() string { return r.message }

// connect asks the agent for a connection.
func (l *link) connect(ctx context.Context, destination netip.AddrPort) (*frame.Stream, error) {
	stream, err := l.session.Open()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Now()) })
	defer stop()
	response := frame.Response{}
	err = frame.Write(stream, frame.Request{Address: destination.String()})
	if err == nil {
		err = frame.Read(stream, &response)
	}
	switch {
	case err == nil && response.Error != "":
		err = refusal{fmt.Sprintf("agent on node %s: %s", l.node, response.Error)}
	case err == nil && !stop():
		err = fmt.Errorf("connecting to %s from node %s: %w", destination, l.node, context.Cause(ctx))
	case err != nil:
		err = fmt.Errorf("connecting to %s from node %s: %w", destination, l.node, err)
	default:
		return stream, nil
	}
	return nil, errors.Join(err, stream.Close())
}

// pool holds the connected agents.
type pool struct {
	mu    sync.Mutex
	links []*link
	// changed is closed and replaced when an agent connects.
	changed chan struct{}
	// left is when the last agent disconnected.
	left time.Time
	ever bool
}

func (p *pool) add(l *link) {
	p.mu.Lock()
	p.links, p.ever = append(p.links, l), true
	p.mu.Unlock()
	p.notify()
}

func (p *pool) notify() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *pool) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links = slices.DeleteFunc(p.links, func(other *link) bool { return other == l })
	p.left = time.Now()
}

func (p *pool) all() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.links)
}

func (p *pool) nodes() []string {
	var names []string
	for _, l := range p.all() {
		names = append(names, l.node)
	}
	slices.Sort(names)
	return names
}

// best returns the most suitable agent that was not tried; if near is set, only one on the node of the address. If
// there is none, next is closed when an agent connects. It is nil if none is expected soon.
func (p *pool) best(ip netip.Addr, near bool, tried map[*link]bool) (l *link, next <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	untried := slices.DeleteFunc(slices.Clone(p.links), func(l *link) bool { return tried[l] || near && !l.near(ip) })
	if len(untried) > 0 {
		return slices.MinFunc(untried, func(a, b *link) int { return cmp.Compare(a.rank(ip), b.rank(ip)) }), nil
	}
	// Agents that were tried have just disconnected.
	if !near && p.ever && (len(tried) > 0 || time.Since(p.left) < recently) {
		return nil, p.changed
	}
	return nil, nil
}
