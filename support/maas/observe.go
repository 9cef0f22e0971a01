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

// outcome is the result of one attempt of a call.
type outcome struct {
	// code is the HTTP status; zero if no answer arrived.
	code int
	took time.Duration
	// out is the decoded answer.
	out any
	err error
}

// unwell reports whether MAAS serves no calls, or none of this user. An error about a single object does not count.
func (o outcome) unwell() bool {
	return o.err != nil && (o.code < 400 || o.code == http.StatusUnauthorized || o.code == http.StatusTooManyRequests || o.code >= 500)
}

// observe records and logs an attempt. It always logs changes in MAAS; it logs reads only at the level for reads. A
// failed read is logged at the level for changes if the previous read of that operation did not fail in the same way.
// The caller of each failed read gets its error anyway.
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

// details returns the log values of a call. They contain nothing of the request or the answer, except the message of an
// error.
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

// health holds the latest failure of each operation.
type health struct {
	mu      sync.Mutex
	failing map[string]int
}

// changed records an outcome. It reports whether the operation's previous outcome was of a different kind.
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
