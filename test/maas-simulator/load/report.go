// SPDX-License-Identifier: Apache-2.0

package load

import (
	"sort"
	"time"
)

// Report is what callers made a region spend.
type Report struct {
	// Seconds is how long it was counted.
	Seconds float64 `json:"seconds"`
	// Total sums up the operations; it has no name.
	Total Row `json:"total"`
	// Operations are sorted, the dearest first.
	Operations []Row `json:"operations"`
}

// Row is what one operation, such as machines.read, took.
type Row struct {
	Operation string `json:"operation,omitempty"`
	Calls     int    `json:"calls"`
	// Machines is how many machines the answers printed.
	Machines int `json:"machines"`
	// BusySeconds is the time that workers were at it, QueuedSeconds what
	// requests waited for a worker.
	BusySeconds   float64 `json:"busy_seconds"`
	QueuedSeconds float64 `json:"queued_seconds"`
	// CallsPerMinute and BusySecondsPerMinute are 0 when no time has passed.
	CallsPerMinute       float64 `json:"calls_per_minute"`
	BusySecondsPerMinute float64 `json:"busy_seconds_per_minute"`
}

// Report says what was spent since the meter was made or Reset.
func (m *Meter) Report() Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	elapsed := m.clock.Since(m.since)
	var total spent
	r := Report{Seconds: elapsed.Seconds(), Operations: []Row{}}
	for operation, s := range m.spent {
		r.Operations = append(r.Operations, s.row(operation, elapsed))
		total.add(*s)
	}
	sort.Slice(r.Operations, func(i, j int) bool {
		a, b := r.Operations[i], r.Operations[j]
		return a.BusySeconds > b.BusySeconds || a.BusySeconds == b.BusySeconds && a.Operation < b.Operation
	})
	r.Total = total.row("", elapsed)
	return r
}

// Of returns the row of an operation; the zero Row when nobody asked for it.
func (r Report) Of(operation string) Row {
	for _, row := range r.Operations {
		if row.Operation == operation {
			return row
		}
	}
	return Row{Operation: operation}
}

func (s spent) row(operation string, elapsed time.Duration) Row {
	row := Row{
		Operation: operation, Calls: s.calls, Machines: s.machines, BusySeconds: s.busy.Seconds(), QueuedSeconds: s.queued.Seconds(),
	}
	if minutes := elapsed.Minutes(); minutes > 0 {
		row.CallsPerMinute, row.BusySecondsPerMinute = float64(s.calls)/minutes, row.BusySeconds/minutes
	}
	return row
}
