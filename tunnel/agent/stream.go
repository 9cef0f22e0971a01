// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openshift/hypershift/tunnel/frame"
)

// serve connects the streams of a server until the session ends.
func (a *Agent) serve(session *frame.Session) {
	for {
		stream, err := session.Accept()
		if err != nil {
			return
		}
		a.streams.add(1)
		go func() {
			defer a.streams.add(-1)
			a.connectStream(stream)
		}()
	}
}

// connectStream dials the destination of a stream.
func (a *Agent) connectStream(stream *frame.Stream) {
	target, err := a.target(stream)
	if err != nil {
		_ = frame.Write(stream, frame.Response{Error: err.Error()})
		_ = stream.Close()
		return
	}
	if err := frame.Write(stream, frame.Response{}); err != nil {
		_, _ = stream.Close(), target.Close()
		return
	}
	frame.Splice(stream, target)
}

func (a *Agent) target(stream *frame.Stream) (frame.Half, error) {
	_ = stream.SetReadDeadline(time.Now().Add(frame.Handshake))
	request := frame.Request{}
	if err := frame.Read(stream, &request); err != nil {
		return nil, err
	}
	_ = stream.SetReadDeadline(time.Time{})
	destination, err := frame.Destination(request.Address)
	if err == nil {
		err = a.permitted(destination.Addr())
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialing)
	defer cancel()
	conn, err := a.Dial(ctx, "tcp", destination.String())
	if err != nil {
		return nil, err
	}
	half, ok := conn.(frame.Half)
	if !ok {
		_ = conn.Close()
		return nil, fmt.Errorf("connecting to %s: a %T has no two directions", destination, conn)
	}
	return half, nil
}

// permitted refuses addresses outside the cluster network and this node. A node often reaches networks that are closed
// to the control plane, such as that of the management cluster.
func (a *Agent) permitted(ip netip.Addr) error {
	contains := func(network netip.Prefix) bool { return network.Contains(ip) }
	if slices.ContainsFunc(a.ClusterNetworks, contains) {
		return nil
	}
	own, err := a.Networks()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(own, contains) {
		return nil
	}
	return fmt.Errorf("destination %s is neither in the cluster network nor on this node", ip)
}

// counter counts open streams. A WaitGroup does not allow new streams while something waits for zero.
type counter struct {
	mu   sync.Mutex
	open int
	zero chan struct{}
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
	if c.open == 0 && c.zero != nil {
		close(c.zero)
		c.zero = nil
	}
}

// wait returns whether no stream was open at some time within a duration.
func (c *counter) wait(limit time.Duration) bool {
	c.mu.Lock()
	if c.open == 0 {
		c.mu.Unlock()
		return true
	}
	zero := make(chan struct{})
	c.zero = zero
	c.mu.Unlock()
	select {
	case <-zero:
		return true
	case <-time.After(limit):
		return false
	}
}
