// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"errors"
	"sync"
	"time"
)

// mostDoublings bounds how patient a client becomes: MAAS prints some ten thousand machines in four minutes.
const mostDoublings = 2

// patience bounds a list of machines, of which nobody knows how many MAAS has to print. After one that took too long, the next one may
// take twice as long: a MAAS that is slow is not one that can't be reached.
type patience struct {
	mu        sync.Mutex
	doublings int
}

func (p *patience) limit(read time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return 3 * read << p.doublings
}

// learn notes how a list ended. One that was quick ends the patience, so that a MAAS that hangs is noticed soon.
func (p *patience) learn(ctx context.Context, err error, quick bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		p.doublings = min(p.doublings+1, mostDoublings)
	case err == nil && quick:
		p.doublings = 0
	}
}
