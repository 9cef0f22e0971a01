// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"sync"
	"time"

	"github.com/openshift/hypershift/support/maas"
)

const (
	// powerOnEvery is longer than a machine takes to report that it is on.
	powerOnEvery = 5 * time.Minute
	// releaseAgainEvery is the first delay before a failed release is retried. It is short, so that a repaired BMC is
	// noticed soon. The backoff keeps the cost of a dead BMC low.
	releaseAgainEvery = 30 * time.Second
	// rarely is the maximum delay between two retries.
	rarely = time.Hour
)

// pace limits how often an action on a machine is repeated. Each delay is twice the previous one, up to rarely. A
// restart loses the state, which costs one extra call.
type pace struct {
	first time.Duration
	mu    sync.Mutex
	turns map[string]turn
}

// turn holds the time of the last action and the delay before the next one.
type turn struct {
	at    time.Time
	pause time.Duration
}

func newPace(first time.Duration) *pace {
	return &pace{first: first, turns: map[string]turn{}}
}

// due reports whether the action may be done now, and if so, records that it is done.
func (p *pace) due(systemID string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, t := range p.turns {
		if now.Sub(t.at) > t.pause+rarely {
			delete(p.turns, id) // The action succeeded, or is no longer requested.
		}
	}
	last, again := p.turns[systemID]
	switch {
	case !again:
		p.turns[systemID] = turn{now, p.first}
	case now.Sub(last.at) < last.pause:
		return false
	default:
		p.turns[systemID] = turn{now, min(2*last.pause, rarely)}
	}
	return true
}

// refusals holds the backoff for changes that MAAS rejected, by machine. The delay starts at first and doubles with
// each further rejection in a row, up to most. During the delay, the last rejection is reported again and no call is
// made. A restart loses the state, which costs one extra call.
type refusals struct {
	first, most time.Duration
	mu          sync.Mutex
	bySystemID  map[string]refusal
}

type refusal struct {
	problem Problem
	pause   time.Duration
	until   time.Time
}

func newRefusals(first, most time.Duration) *refusals {
	return &refusals{first: first, most: most, bySystemID: map[string]refusal{}}
}

// add records another rejection, and returns the delay before the next call.
func (r *refusals) add(systemID string, p Problem, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := r.first
	if last, again := r.bySystemID[systemID]; again {
		pause = min(2*last.pause, r.most)
	}
	pause = jitter(pause)
	r.bySystemID[systemID] = refusal{problem: p, pause: pause, until: now.Add(pause)}
	return pause
}

// hold records a rejection with the delay that the caller chose. It drops rejections of long ago.
func (r *refusals) hold(key string, p Problem, pause time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, last := range r.bySystemID {
		if now.Sub(last.until) > rarely {
			delete(r.bySystemID, other)
		}
	}
	r.bySystemID[key] = refusal{problem: p, pause: pause, until: now.Add(pause)}
}

// standing returns the current rejection and the rest of its delay; zero when there is none.
func (r *refusals) standing(systemID string, now time.Time) (Problem, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.bySystemID[systemID]
	return last.problem, max(0, last.until.Sub(now))
}

// end removes the rejections of a machine after a successful change, or when the machine is no longer in use.
func (r *refusals) end(systemID string) {
	r.mu.Lock()
	delete(r.bySystemID, systemID)
	r.mu.Unlock()
}

// refused reports whether MAAS answered and rejected the change of this machine. It is false if MAAS is unreachable or
// rejects the user: then nothing is wrong with the machine.
func refused(err error) bool {
	return maas.IsInvalid(err) || maas.IsConflict(err) || maas.IsUnavailable(err)
}
