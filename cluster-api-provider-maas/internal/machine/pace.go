// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"sync"
	"time"

	"github.com/openshift/hypershift/support/maas"
)

const (
	// powerOnEvery is longer than a machine takes to show that it is on.
	powerOnEvery = 5 * time.Minute
	// releaseAgainEvery is the first pause before a release that failed is asked for again: a BMC that was mended is noticed soon,
	// one that stays dead costs less and less.
	releaseAgainEvery = 30 * time.Second
	// rarely is the longest pause between two repetitions of what does not help.
	rarely = time.Hour
)

// pace bounds how often something is done to a machine that did not help the last time: each pause is twice as long as the one
// before, up to rarely. A restart forgets it, which costs one call more.
type pace struct {
	first time.Duration
	mu    sync.Mutex
	turns map[string]turn
}

// turn is when something was done, and how long it is not done again.
type turn struct {
	at    time.Time
	pause time.Duration
}

func newPace(first time.Duration) *pace {
	return &pace{first: first, turns: map[string]turn{}}
}

// due tells whether it may be done now, and if so notes that it is.
func (p *pace) due(systemID string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, t := range p.turns {
		if now.Sub(t.at) > t.pause+rarely {
			delete(p.turns, id) // It helped, or nobody asks any more.
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

// refusals remember what MAAS refused to do to a machine. The first pause is that after any problem, each further one in a row
// twice as long, up to most; in between, the refusal is told again and the call is not made. A restart forgets them, which costs
// one call more.
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

// add notes one more refusal, and says how long to pause.
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

// standing returns the refusal of which the pause has not passed, and what is left of it; zero when there is none.
func (r *refusals) standing(systemID string, now time.Time) (Problem, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.bySystemID[systemID]
	return last.problem, max(0, last.until.Sub(now))
}

// end forgets the refusals of a machine to which MAAS did something, or with which we are done.
func (r *refusals) end(systemID string) {
	r.mu.Lock()
	delete(r.bySystemID, systemID)
	r.mu.Unlock()
}

// refused tells that MAAS answered, and does not do to this machine what it was asked. Nothing is wrong with the machine when MAAS
// can't be asked, or takes offence at the user.
func refused(err error) bool {
	return maas.IsInvalid(err) || maas.IsConflict(err) || maas.IsUnavailable(err)
}
