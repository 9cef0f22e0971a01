// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"sync"
)

// None is a backend without machines: it stores only power states. The zero value is ready to use. A machine on None
// never reports that it is up; the simulator does that instead.
type None struct {
	mu sync.Mutex
	on map[string]bool
}

var _ Backend = (*None)(nil)

// Install does nothing: there are no disks.
func (n *None) Install(context.Context, Spec) error { return nil }

// PowerOn sets the power state to on.
func (n *None) PowerOn(_ context.Context, spec Spec) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.on == nil {
		n.on = map[string]bool{}
	}
	n.on[spec.SystemID] = true
	return nil
}

// PowerOff sets the power state to off.
func (n *None) PowerOff(_ context.Context, systemID string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.on, systemID)
	return nil
}

// Power returns the state that the last PowerOn or PowerOff set.
func (n *None) Power(_ context.Context, systemID string) (State, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.on[systemID] {
		return On, nil
	}
	return Off, nil
}

// Erase does nothing: there is no content.
func (n *None) Erase(context.Context, string) error { return nil }
