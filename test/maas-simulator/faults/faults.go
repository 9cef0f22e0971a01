// SPDX-License-Identifier: Apache-2.0

// Package faults injects faults into the simulator. Rules define the kind, the target, the frequency and the duration
// of a fault.
package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Rule defines a fault.
type Rule struct {
	// ID is set by Add.
	ID   int  `json:"id"`
	Kind Kind `json:"kind"`
	// Operation is a glob over operation names such as machine.deploy or
	// machines.*; empty means every operation.
	Operation string `json:"operation,omitempty"`
	// Machine is a glob over system IDs and hostnames; empty means every machine. With a glob, a fault of requests
	// applies only to requests whose path names a machine that matches.
	Machine string `json:"machine,omitempty"`
	// User is a glob over user names; empty means every user. Request kinds hit the requests of these users. Machine kinds
	// hit the machines that these users own.
	User string `json:"user,omitempty"`
	// Rate is the probability, from 0 to 1, that the fault hits a matching request or machine; 0 means that it hits
	// all.
	Rate float64 `json:"rate,omitempty"`
	// Count is the maximum number of hits; 0 means no limit.
	Count int `json:"count,omitempty"`
	// For is the duration of the rule; 0 means no end.
	For Duration `json:"for,omitempty"`
	// Status is the HTTP status of error kinds; 0 means 503, and 403 for Proxy.
	Status int `json:"status,omitempty"`
	// Message is the body of an error, or the text of an event. A JSON object is sent as JSON, as MAAS reports errors of a
	// form.
	Message string `json:"message,omitempty"`
	// Delay is the delay of latency kinds.
	Delay Duration `json:"delay,omitempty"`
	// Machines is the maximum number of machines that the rule hits; 0 means no limit. The first machines that match
	// stay the rule's machines, and it ignores all others. For power faults, powering on a machine makes it one of
	// them. MAAS's own power queries do not (see Set.Seen).
	Machines int `json:"machines,omitempty"`
	// Hits counts the hits.
	Hits int `json:"hits"`
	// Hit lists the system IDs that a rule with Machines has hit, in the order of the first hits.
	Hit []string `json:"hit,omitempty"`

	until time.Time
}

// Duration is a time.Duration that is written like 1m30s in JSON.
type Duration time.Duration

// MarshalText returns the duration in Go's notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses Go's notation.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("reading a duration such as 1m30s: %w", err)
	}
	*d = Duration(parsed)
	return nil
}

// Set holds the active rules. Create one with NewSet.
type Set struct {
	mu     sync.Mutex
	clock  clock.PassiveClock
	random *rand.Rand
	rules  []*Rule
	last   int
}

// NewSet returns an empty Set. The seed makes the hits of rules with a Rate reproducible.
func NewSet(c clock.PassiveClock, seed uint64) *Set {
	return &Set{clock: c, random: rand.New(rand.NewPCG(seed, 1))}
}

// Add activates a rule and returns its ID. It rejects invalid rules.
func (s *Set) Add(r Rule) (int, error) {
	if !slices.Contains(Kinds(), r.Kind) {
		return 0, fmt.Errorf("fault kind %q is not known: use one of %v", r.Kind, Kinds())
	}
	if r.Rate < 0 || r.Rate > 1 {
		return 0, fmt.Errorf("rate %v of a fault must be between 0 and 1", r.Rate)
	}
	if r.Machines < 0 {
		return 0, fmt.Errorf("machines %d of a fault must not be negative", r.Machines)
	}
	if r.Status != 0 && (r.Status < 400 || r.Status > 599) {
		return 0, fmt.Errorf("status %d of a fault must be between 400 and 599", r.Status)
	}
	if _, err := path.Match(r.Operation, "machines.read"); err != nil {
		return 0, fmt.Errorf("operation %q of a fault is not a pattern: %w", r.Operation, err)
	}
	if _, err := path.Match(r.Machine, "one"); err != nil {
		return 0, fmt.Errorf("machine %q of a fault is not a pattern: %w", r.Machine, err)
	}
	if _, err := path.Match(r.User, "one"); err != nil {
		return 0, fmt.Errorf("user %q of a fault is not a pattern: %w", r.User, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	r.ID, r.Hits, r.Hit = s.last, 0, nil
	if r.For > 0 {
		r.until = s.clock.Now().Add(time.Duration(r.For))
	}
	s.rules = append(s.rules, &r)
	return r.ID, nil
}

// Remove deletes a rule. It returns false if there is none with the ID.
func (s *Set) Remove(id int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.rules)
	s.rules = slices.DeleteFunc(s.rules, func(r *Rule) bool { return r.ID == id })
	return len(s.rules) < before
}

// Clear deletes all rules.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// List returns copies of the active rules.
func (s *Set) List() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Rule{}
	for _, r := range s.rules {
		if !r.over(s.clock.Now()) {
			out = append(out, r.copied())
		}
	}
	return out
}

func (r *Rule) over(now time.Time) bool {
	return !r.until.IsZero() && now.After(r.until) || r.Count > 0 && r.Hits >= r.Count
}

func (r *Rule) copied() Rule {
	c := *r
	c.Hit = slices.Clone(r.Hit)
	return c
}

// spares reports whether the rule ignores the target: it has no machine, or the rule has its maximum of other
// machines.
func (r *Rule) spares(t Target) bool {
	return r.Machines > 0 && (!t.named() || len(r.Hit) >= r.Machines && !slices.Contains(r.Hit, t.SystemID))
}

// struck counts a hit.
func (r *Rule) struck(t Target) {
	r.Hits++
	if r.Machines > 0 && !slices.Contains(r.Hit, t.SystemID) {
		r.Hit = append(r.Hit, t.SystemID)
	}
}

// Target is the machine or VM host that a request or an operation concerns; SystemID and Hostname are empty if there
// is none. User is the user of a request, or else the owner of the machine.
type Target struct{ SystemID, Hostname, User string }

func (t Target) named() bool { return t.SystemID != "" || t.Hostname != "" }

// on reports whether the rule matches the machine and the user.
func (r *Rule) on(t Target) bool {
	byUser, _ := path.Match(r.User, t.User)
	if r.User != "" && !byUser {
		return false
	}
	byID, _ := path.Match(r.Machine, t.SystemID)
	byName, _ := path.Match(r.Machine, t.Hostname)
	return r.Machine == "" || t.named() && (byID || byName)
}

// Request returns the rules that hit an operation, at most one of each kind. target is the machine that the request's
// path names.
func (s *Set) Request(operation string, target Target) map[Kind]Rule {
	return s.hit(target, func(r *Rule) bool {
		if !slices.Contains(requestKinds, r.Kind) {
			return false
		}
		matched, _ := path.Match(r.Operation, operation)
		return r.Operation == "" || matched
	})
}

// Machine returns the rule of a kind that hits a machine now, if any.
func (s *Set) Machine(kind Kind, target Target) (Rule, bool) {
	r, ok := s.hit(target, func(r *Rule) bool { return r.Kind == kind })[kind]
	return r, ok
}

// Seen is like Machine, for events without a user's request, such as MAAS's periodic power queries. It never adds a
// machine to the rule's Machines.
func (s *Set) Seen(kind Kind, target Target) (Rule, bool) {
	r, ok := s.hit(target, func(r *Rule) bool {
		return r.Kind == kind && (r.Machines == 0 || slices.Contains(r.Hit, target.SystemID))
	})[kind]
	return r, ok
}

func (s *Set) hit(target Target, applies func(*Rule) bool) map[Kind]Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hits map[Kind]Rule
	for _, r := range s.rules {
		if !applies(r) || !r.on(target) || r.spares(target) || r.over(s.clock.Now()) || r.Rate > 0 && s.random.Float64() >= r.Rate {
			continue
		}
		if _, already := hits[r.Kind]; already {
			continue
		}
		r.struck(target)
		if hits == nil {
			hits = map[Kind]Rule{}
		}
		hits[r.Kind] = r.copied()
	}
	return hits
}

// Text returns the rule's message, or the fallback.
func (r Rule) Text(fallback string) string {
	if r.Message != "" {
		return r.Message
	}
	return fallback
}

// Code returns the rule's HTTP status.
func (r Rule) Code() int {
	switch {
	case r.Status != 0:
		return r.Status
	case r.Kind == Proxy:
		return http.StatusForbidden
	}
	return http.StatusServiceUnavailable
}
