// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"sync"
)

// None is a backend without metal: it remembers power states and nothing else.
// The zero value is ready to use. A machine on None never reports that it is
// up; the simulator does that for it.
type None struct {
	mu sync.Mutex
	on map[string]bool
}

var _ Backend = (*None)(nil)

// Install does nothing: there are no disks.
func (n *None) Install(context.Context, Spec) error { return nil }

// PowerOn notes that the machine is on.
func (n *None) PowerOn(_ context.Context, spec Spec) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.on == nil {
		n.on = map[string]bool{}
	}
	n.on[spec.SystemID] = true
	return nil
}

// PowerOff notes that the machine is off.
func (n *None) PowerOff(_ context.Context, systemID string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.on, systemID)
	return nil
}

// Power reports what the last PowerOn or PowerOff said.
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
