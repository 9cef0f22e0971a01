// Package faults makes a server misbehave on purpose: rules say what goes wrong,
// where, how often and for how long.
package faults

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Kind is what goes wrong.
type Kind string

// The kinds of faults. Those before DeployFails hit requests, the others hit
// machines.
const (
	// Error answers with Status instead of doing what was asked.
	Error Kind = "error"
	// LostAnswer does what was asked and then answers with Status.
	LostAnswer Kind = "lost-answer"
	// Latency waits for Delay before doing what was asked.
	Latency Kind = "latency"
	// Drop closes the connection without doing what was asked.
	Drop Kind = "drop"
	// DropAfter does what was asked and closes the connection in the middle of
	// the answer.
	DropAfter Kind = "drop-after"

	// DeployFails fails the next deployments at the installation.
	DeployFails Kind = "deploy-fails"
	// BootHangs lets the deployed system never fetch its user-data.
	BootHangs Kind = "boot-hangs"
	// PowerError fails power actions and queries.
	PowerError Kind = "power-error"
	// ReleaseFails fails releases.
	ReleaseFails Kind = "release-fails"
	// SlowRelease adds Delay to releases.
	SlowRelease Kind = "slow-release"
	// CommissionFails fails commissioning.
	CommissionFails Kind = "commission-fails"
	// EraseFails fails disk erasing.
	EraseFails Kind = "erase-fails"
	// TestFails fails hardware tests.
	TestFails Kind = "test-fails"
	// BrokenOnDeploy turns a machine Broken while it deploys.
	BrokenOnDeploy Kind = "broken-on-deploy"
)

var kinds = []Kind{
	Error, LostAnswer, Latency, Drop, DropAfter, DeployFails, BootHangs, PowerError, ReleaseFails, SlowRelease,
	CommissionFails, EraseFails, TestFails, BrokenOnDeploy,
}

// Rule is one fault.
type Rule struct {
	// ID is given by Add.
	ID   int  `json:"id"`
	Kind Kind `json:"kind"`
	// Operation is a glob over operation names such as machine.deploy or
	// machines.*; empty means every operation.
	Operation string `json:"operation,omitempty"`
	// Machine is a system id or a hostname; empty means every machine.
	Machine string `json:"machine,omitempty"`
	// Rate is the share of occasions that are hit; 0 means all.
	Rate float64 `json:"rate,omitempty"`
	// Count is how many occasions are hit at most; 0 means no limit.
	Count int `json:"count,omitempty"`
	// For ends the rule after that time; 0 means never.
	For Duration `json:"for,omitempty"`
	// Status is the HTTP status of error kinds; 0 means 503.
	Status int `json:"status,omitempty"`
	// Message is the body of an error, or the text of an event.
	Message string `json:"message,omitempty"`
	// Delay is how long latency kinds wait.
	Delay Duration `json:"delay,omitempty"`
	// Hits counts the occasions that were hit.
	Hits int `json:"hits"`

	until time.Time
}

// Duration is written like 1m30s in JSON.
type Duration time.Duration

// MarshalText writes the duration in Go's notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads Go's notation.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("reading a duration such as 1m30s: %w", err)
	}
	*d = Duration(parsed)
	return nil
}

// Set holds the rules that are in force. Make one with NewSet.
type Set struct {
	mu     sync.Mutex
	clock  clock.PassiveClock
	random *rand.Rand
	rules  []*Rule
	last   int
}

// NewSet makes an empty set; the same seed hits the same occasions.
func NewSet(c clock.PassiveClock, seed uint64) *Set {
	return &Set{clock: c, random: rand.New(rand.NewPCG(seed, 1))}
}

// Add puts a rule in force and returns its id. It refuses rules that make no sense.
func (s *Set) Add(r Rule) (int, error) {
	if !slices.Contains(kinds, r.Kind) {
		return 0, fmt.Errorf("fault kind %q is not known: use one of %v", r.Kind, kinds)
	}
	if r.Rate < 0 || r.Rate > 1 {
		return 0, fmt.Errorf("rate %v of a fault must be between 0 and 1", r.Rate)
	}
	if r.Status != 0 && (r.Status < 400 || r.Status > 599) {
		return 0, fmt.Errorf("status %d of a fault must be between 400 and 599", r.Status)
	}
	if _, err := path.Match(r.Operation, "machines.read"); err != nil {
		return 0, fmt.Errorf("operation %q of a fault is no pattern: %w", r.Operation, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	r.ID, r.Hits = s.last, 0
	if r.For > 0 {
		r.until = s.clock.Now().Add(time.Duration(r.For))
	}
	s.rules = append(s.rules, &r)
	return r.ID, nil
}

// Remove takes a rule out of force; false when there is none with that id.
func (s *Set) Remove(id int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.rules)
	s.rules = slices.DeleteFunc(s.rules, func(r *Rule) bool { return r.ID == id })
	return len(s.rules) < before
}

// Clear takes every rule out of force.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// List returns copies of the rules in force.
func (s *Set) List() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Rule{}
	for _, r := range s.rules {
		if !r.over(s.clock.Now()) {
			out = append(out, *r)
		}
	}
	return out
}

func (r *Rule) over(now time.Time) bool {
	return !r.until.IsZero() && now.After(r.until) || r.Count > 0 && r.Hits >= r.Count
}

// Request returns the rules that hit an operation, at most one of each kind.
func (s *Set) Request(operation string) map[Kind]Rule {
	return s.hit(func(r *Rule) bool {
		if !slices.Contains(kinds[:5], r.Kind) {
			return false
		}
		matched, _ := path.Match(r.Operation, operation)
		return r.Operation == "" || matched
	})
}

// Machine returns the rule of a kind that hits a machine now, if there is one.
func (s *Set) Machine(kind Kind, systemID, hostname string) (Rule, bool) {
	hits := s.hit(func(r *Rule) bool {
		return r.Kind == kind && (r.Machine == "" || r.Machine == systemID || r.Machine == hostname)
	})
	r, ok := hits[kind]
	return r, ok
}

func (s *Set) hit(applies func(*Rule) bool) map[Kind]Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hits map[Kind]Rule
	for _, r := range s.rules {
		if !applies(r) || r.over(s.clock.Now()) || r.Rate > 0 && s.random.Float64() >= r.Rate {
			continue
		}
		if _, already := hits[r.Kind]; already {
			continue
		}
		r.Hits++
		if hits == nil {
			hits = map[Kind]Rule{}
		}
		hits[r.Kind] = *r
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
	if r.Status == 0 {
		return 503
	}
	return r.Status
}
