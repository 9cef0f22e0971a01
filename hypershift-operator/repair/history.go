// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const (
	// firstWait is the wait after the first repair for the same cause. Each further repair doubles it, up to longestWait.
	firstWait, longestWait = 30 * time.Minute, 12 * time.Hour
	// memory is how long a repair counts. If all machines of the pool were healthy for calm, no earlier repair counts.
	memory, calm = 72 * time.Hour, 2 * time.Hour
	// maxRecords limits the history. The wait reaches its maximum with fewer records.
	maxRecords = 20
)

// Record is one repair.
type Record struct {
	// Machine is the name of the replaced Machine, and Cause the reason for which it failed.
	Machine string `json:"machine"`
	Cause   string `json:"cause"`
	// At is when the repair was allowed.
	At time.Time `json:"at"`
}

// History holds the repairs of a pool, oldest first.
type History []Record

// Parse reads a history as String writes it. An empty text is an empty history.
func Parse(text string) (History, error) {
	if text == "" {
		return nil, nil
	}
	var h History
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return nil, fmt.Errorf("reading the recent repairs: %w", err)
	}
	return h, nil
}

// String returns the history as JSON; empty for an empty history.
func (h History) String() string {
	if len(h) == 0 {
		return ""
	}
	text, err := json.Marshal(h)
	if err != nil {
		return "" // Names and times can always be encoded.
	}
	return string(text)
}

// keep returns the records that still count. A record does not count if its machine exists and is no longer going to
// be replaced.
func (h History) keep(s State) History {
	healthySince, healthy := time.Time{}, s.size() > 0
	unrepaired := map[string]bool{}
	for _, m := range s.Machines {
		if m.OtherPool {
			continue
		}
		healthy = healthy && m.Healthy && m.Deleted.IsZero()
		if m.Since.After(healthySince) {
			healthySince = m.Since
		}
		unrepaired[m.Name] = m.Deleted.IsZero() && !m.Marked && !m.Admitted
	}
	if healthy && s.Now.Sub(healthySince) >= calm {
		return nil
	}
	var kept History
	for _, record := range h {
		if !unrepaired[record.Machine] && s.Now.Sub(record.At) < memory {
			kept = append(kept, record)
		}
	}
	return kept
}

// with adds the repair of a machine to the history, unless the history contains it already.
func (h History) with(m Machine, now time.Time) History {
	if slices.ContainsFunc(h, func(r Record) bool { return r.Machine == m.Name }) {
		return h
	}
	all := append(slices.Clone(h), Record{Machine: m.Name, Cause: m.Cause, At: now.UTC().Truncate(time.Second)})
	return all[max(0, len(all)-maxRecords):]
}

// repeated holds a repair back if earlier ones for the same cause did not help. A short wait after any repair covers
// the time until the caches show it.
func (s State) repeated(candidate Machine) (reason, why string) {
	var last Record
	count := 0
	for _, record := range s.History {
		if record.Machine == candidate.Name {
			continue
		}
		if s.Now.Sub(record.At) < settle {
			return hyperv1.NodePoolWaitingForRepairReason,
				fmt.Sprintf("Machine %s was replaced just now; the repair continues afterwards", record.Machine)
		}
		if record.Cause == candidate.Cause {
			last, count = record, count+1
		}
	}
	if count == 0 || candidate.proven() {
		return "", ""
	}
	next := last.At.Add(wait(count))
	if !s.Now.Before(next) {
		return "", ""
	}
	return hyperv1.NodePoolRepairedRecentlyReason, fmt.Sprintf("a repair at %s for the same cause (%s) did not help, "+
		"and the next one is at %s. Another machine may have the cause too; fix it, or delete the Machine to replace it now",
		last.At.Format(time.RFC3339), candidate.Cause, next.Format(time.RFC3339))
}

// wait returns the wait after a number of repairs for the same cause.
func wait(repairs int) time.Duration {
	d := firstWait
	for range repairs - 1 {
		d = min(2*d, longestWait)
	}
	return d
}
