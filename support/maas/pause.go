// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// pause keeps a client silent for as long as a server that limits the rate of its calls (429) asks it to be. A 503 asks only who
// got it to wait: MAAS says it of the power of one machine, too.
type pause struct {
	mu    sync.Mutex
	until time.Time
}

func (p *pause) note(err error, now time.Time) {
	if !hasStatus(err, http.StatusTooManyRequests) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := now.Add(RetryAfter(err)); until.After(p.until) {
		p.until = until
	}
}

// left is the error of a call that must not be sent yet.
func (p *pause) left(request call, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.until.Sub(now)
	if left <= 0 {
		return nil
	}
	return &Error{Operation: request.what, StatusCode: http.StatusTooManyRequests, RetryAfter: left,
		Message: fmt.Sprintf("MAAS takes no calls for another %s, as it said", left.Round(time.Second))}
}
