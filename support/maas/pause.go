// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// pause blocks all calls of a client for the time that a rate-limiting server requested (429). A 503 delays only the
// call that received it: MAAS also sends it for the power of a single machine.
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

// left returns the error of a call that must not be sent yet; nil if it may be sent.
func (p *pause) left(request call, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.until.Sub(now)
	if left <= 0 {
		return nil
	}
	return &Error{Operation: request.what, StatusCode: http.StatusTooManyRequests, RetryAfter: left,
		Message: fmt.Sprintf("MAAS limits the rate of calls; retry in %s", left.Round(time.Second))}
}
