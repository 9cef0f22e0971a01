// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/openshift/hypershift/support/logging"
)

// outcome is what became of one attempt of a call.
type outcome struct {
	// code is the HTTP status; zero when no answer came.
	code int
	took time.Duration
	// out is what the answer was decoded into.
	out any
	err error
}

// unwell tells that MAAS serves nobody, or not this user, as opposed to what it says of one object.
func (o outcome) unwell() bool {
	return o.err != nil && (o.code < 400 || o.code == http.StatusUnauthorized || o.code == http.StatusTooManyRequests || o.code >= 500)
}

// observe measures an attempt and logs it: a change of MAAS always, a read for who wants to see reads. A read that fails is
// news when the one before it did not fail like that; all say it again to whom the error goes.
func (c *Client) observe(ctx context.Context, request call, o outcome) {
	c.cfg.Metrics.observe(request.name, o.code, o.took)
	changed := c.health.changed(request.name, o)
	level, message := logging.Reads, "Read from MAAS"
	switch {
	case request.method != http.MethodGet && o.err != nil:
		level, message = logging.Changes, "MAAS did not make a change"
	case request.method != http.MethodGet:
		level, message = logging.Changes, "Changed MAAS"
	case changed && o.unwell():
		level, message = logging.Changes, "MAAS does not answer as it should"
	case changed:
		level, message = logging.Changes, "MAAS answers again"
	}
	logger := log.FromContext(ctx).V(level)
	if logger.Enabled() {
		logger.Info(message, details(request, o)...)
	}
}

// details names the call and never says what is sent or what came back, but for the words of an error.
func details(request call, o outcome) []any {
	all := []any{"operation", request.name, "code", o.code, "duration", o.took}
	systemID, hostname := request.systemID, ""
	if machine, ok := o.out.(*Machine); ok && machine.SystemID != "" {
		systemID, hostname = machine.SystemID, machine.Hostname
	}
	if systemID != "" {
		all = append(all, "systemID", systemID)
	}
	if hostname != "" {
		all = append(all, "hostname", hostname)
	}
	if o.err != nil {
		all = append(all, "error", o.err.Error())
	}
	return all
}

// health remembers by operation how MAAS failed last.
type health struct {
	mu      sync.Mutex
	failing map[string]int
}

// changed notes an outcome, and tells whether the last one of its operation was of another kind.
func (h *health) changed(operation string, o outcome) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, failed := h.failing[operation]
	if !o.unwell() {
		delete(h.failing, operation)
		return failed
	}
	if h.failing == nil {
		h.failing = map[string]int{}
	}
	h.failing[operation] = o.code
	return !failed || before != o.code
}
