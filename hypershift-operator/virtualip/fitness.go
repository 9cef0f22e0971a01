// SPDX-License-Identifier: Apache-2.0

package virtualip

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Check says why this node should not have the addresses now; nil when it may.
type Check func(ctx context.Context) error

const (
	// checkTimeout is how long a check may take.
	checkTimeout = time.Second
	// strikes are the checks in a row that must fail before a holder gives up: what is late once is no reason to move.
	strikes = 3
)

// Answers checks that a server on this node, such as kube-proxy, says that it is well. One that never answered is taken for not being
// there: not every cluster has that server.
func Answers(url string) Check {
	seen := false
	plain := &http.Client{Timeout: checkTimeout}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("health check %s: %w", url, err)
		}
		response, err := plain.Do(request)
		if err != nil {
			if !seen {
				return nil
			}
			return fmt.Errorf("what answered the health check %s does no more: %w", url, err)
		}
		defer response.Body.Close()
		seen = true
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("health check %s: %s", url, response.Status)
		}
		return nil
	}
}

// check asks all checks, and stops at the first that fails.
func (h *Holder) check(ctx context.Context) error {
	for _, address := range h.Addresses {
		if err := h.Network.Check(address); err != nil {
			return err
		}
	}
	for _, check := range h.Checks {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// becomeFit waits until the checks pass; false when the context ended first.
func (h *Holder) becomeFit(ctx context.Context) bool {
	said := ""
	tick := time.NewTicker(h.times().retry)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := h.check(ctx)
		h.fit.Store(err == nil)
		if err == nil {
			return true
		}
		if err.Error() != said {
			said = err.Error()
			h.Log.Info("This node stands back from the virtual IP", "reason", said)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return false
}

// guard ends a term when the checks fail several times in a row.
func (h *Holder) guard(ctx context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(h.times().retry)
	defer tick.Stop()
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := h.check(ctx)
		if err == nil {
			failed = 0
			continue
		}
		if failed++; failed == strikes {
			end(err)
			return
		}
	}
}

// Fit tells whether this node has, or waits for, the addresses.
func (h *Holder) Fit() bool { return h.fit.Load() }
