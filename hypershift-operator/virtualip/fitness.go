// SPDX-License-Identifier: Apache-2.0

package virtualip

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Check returns the reason why this node should not have the addresses now; nil if it may.
type Check func(ctx context.Context) error

const (
	// checkTimeout is the maximum duration of a check.
	checkTimeout = time.Second
	// strikes is the number of consecutive failed checks after which a holder releases the Lease. A single late
	// response is not a reason to move the addresses.
	strikes = 3
)

// Answers checks that a server on this node, such as kube-proxy, reports that it is healthy. A server that has never
// answered counts as not installed, because not every cluster runs it.
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
			return fmt.Errorf("health check %s: no longer responding: %w", url, err)
		}
		defer response.Body.Close()
		seen = true
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("health check %s: %s", url, response.Status)
		}
		return nil
	}
}

// check runs the checks until the first one fails.
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

// becomeFit waits until the checks pass; it returns false if the context ends first.
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
			h.Log.Info("This node is not eligible for the virtual IP", "reason", said)
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

// Fit reports whether this node has the addresses or competes for them.
func (h *Holder) Fit() bool { return h.fit.Load() }
