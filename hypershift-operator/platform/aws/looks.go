// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// lookTimeout limits all requests to AWS in one reconcile.
	lookTimeout = 10 * time.Second
	// seenFor is how long a successful answer of AWS is cached. failedFor is how long AWS is not queried again after a
	// failure.
	seenFor   = 10 * time.Minute
	failedFor = 30 * time.Second
)

// looks caches AWS's answers, so that not every reconcile queries AWS. The zero value is an empty cache.
type looks struct {
	clock clock.PassiveClock
	// timeout limits all requests to AWS in one reconcile; zero means lookTimeout.
	timeout time.Duration
	mu      sync.Mutex
	seen    map[string]look
}

// look is AWS's answer about one resource.
type look struct {
	wanted  [sha256.Size]byte
	at      time.Time
	answer  string
	failure error
}

func (l look) validFor() time.Duration {
	if l.failure != nil {
		return failedFor
	}
	return seenFor
}

// once returns the last answer about a resource if it is fresh and the desired state is the same. Otherwise it calls
// ask. again is the time until the answer expires.
func (l *looks) once(thing string, wanted any, ask func() (string, error)) (answer string, again time.Duration, failure error) {
	raw, err := json.Marshal(wanted)
	if err != nil {
		return "", failedFor, fmt.Errorf("encoding the desired state of %s: %w", thing, err)
	}
	digest := sha256.Sum256(raw)
	if last, left := l.last(thing); left > 0 && last.wanted == digest {
		return last.answer, left, last.failure
	}
	answer, failure = ask()
	found := look{wanted: digest, at: l.now(), answer: answer, failure: failure}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]look{}
	}
	l.seen[thing] = found
	return answer, found.validFor(), failure
}

func (l *looks) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(l.timeout, lookTimeout))
}

func (l *looks) forget(thing string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, thing)
}

func (l *looks) last(thing string) (last look, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last = l.seen[thing]
	return last, last.validFor() - l.now().Sub(last.at)
}

func (l *looks) now() time.Time {
	if l.clock == nil {
		return time.Now()
	}
	return l.clock.Now()
}
