// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"errors"
	"sync"
	"time"
)

// mostDoublings is the maximum number of times that the timeout doubles: MAAS prints about ten thousand machines in
// four minutes.
const mostDoublings = 2

// patience adapts the timeout of machine lists, because the number of machines in MAAS is unknown. After a list that
// timed out, the next one may take twice as long: a slow MAAS is not an unreachable one.
type patience struct {
	mu        sync.Mutex
	doublings int
}

func (p *patience) limit(read time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return 3 * read << p.doublings
}

// learn records the result of a list. A fast list resets the timeout, so that a hanging MAAS is detected early.
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
