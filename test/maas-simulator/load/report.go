// SPDX-License-Identifier: Apache-2.0

package load

import (
	"sort"
	"time"
)

// Report is the cost that callers caused in a region.
type Report struct {
	// Seconds is the time since the last reset.
	Seconds float64 `json:"seconds"`
	// Total is the sum of all operations. Its Operation is empty.
	Total Row `json:"total"`
	// Operations are sorted by cost, the most expensive first.
	Operations []Row `json:"operations"`
}

// Row is the cost of one operation, such as machines.read.
type Row struct {
	Operation string `json:"operation,omitempty"`
	Calls     int    `json:"calls"`
	// Machines is the number of machines in the responses.
	Machines int `json:"machines"`
	// BusySeconds is the time that workers were busy, QueuedSeconds the time that requests waited for a worker.
	BusySeconds   float64 `json:"busy_seconds"`
	QueuedSeconds float64 `json:"queued_seconds"`
	// CallsPerMinute and BusySecondsPerMinute are 0 if no time has passed.
	CallsPerMinute       float64 `json:"calls_per_minute"`
	BusySecondsPerMinute float64 `json:"busy_seconds_per_minute"`
}

// Report returns the cost since the Meter was created or reset.
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

// Of returns the row of an operation, or the zero Row if there were no requests.
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
