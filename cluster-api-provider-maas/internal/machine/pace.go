package machine

import (
	"sync"
	"time"
)

const (
	// powerOnEvery is longer than a machine takes to show that it is on.
	powerOnEvery = 5 * time.Minute
	// releaseAgainEvery paces the repetition of a release that failed: MAAS gives each one five minutes.
	releaseAgainEvery = 5 * time.Minute
)

// pace bounds how often something is done to a machine. A restart forgets it, which costs one call more.
type pace struct {
	every time.Duration
	mu    sync.Mutex
	last  map[string]time.Time
}

func newPace(every time.Duration) *pace {
	return &pace{every: every, last: map[string]time.Time{}}
}

// due tells whether it may be done now, and if so notes that it is.
func (p *pace) due(systemID string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, at := range p.last {
		if now.Sub(at) >= p.every {
			delete(p.last, id)
		}
	}
	if _, early := p.last[systemID]; early {
		return false
	}
	p.last[systemID] = now
	return true
}
