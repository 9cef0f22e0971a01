// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// SetAside holds the machines on which a deployment failed, so that they are not allocated again soon.
type SetAside struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	until map[string]time.Time
}

// NewSetAside returns an empty SetAside.
func NewSetAside(c clock.PassiveClock) *SetAside {
	return &SetAside{clock: c, until: map[string]time.Time{}}
}

// Add sets a machine aside until a time.
func (s *SetAside) Add(systemID string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until.After(s.until[systemID]) {
		s.until[systemID] = until
	}
}

// Any reports whether any machine is set aside now.
func (s *SetAside) Any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for systemID, until := range s.until {
		if s.clock.Now().Before(until) {
			return true
		}
		delete(s.until, systemID)
	}
	return false
}

// Has reports whether a machine is set aside now.
func (s *SetAside) Has(systemID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.until[systemID]
	if !ok {
		return false
	}
	if !s.clock.Now().Before(until) {
		delete(s.until, systemID)
		return false
	}
	return true
}
