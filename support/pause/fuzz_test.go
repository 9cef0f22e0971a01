// SPDX-License-Identifier: Apache-2.0

package pause

import (
	"math"
	"testing"
	"time"
)

// FuzzUntil reads a user's value: it pauses, it does not pause, or it is reported as invalid.
func FuzzUntil(f *testing.F) {
	for _, text := range []string{"", "true", "false", "1", "2026-11-20T12:30:00Z", "9999-12-31T23:59:59+14:00", "0000-01-01T00:00:00Z", "tomorrow"} {
		f.Add(text)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		state := Until(&text, now)
		switch {
		case state.Invalid && state.Paused:
			t.Fatalf("%q is invalid and pauses", text)
		case state.Paused && state.Text == "":
			t.Fatalf("%q pauses and nobody is told until when", text)
		case state.For < 0 || state.For > 0 && !state.Paused:
			t.Fatalf("%q lasts for %s", text, state.For)
		}
		// The longest duration that Go knows ends after 292 years.
		if state.For > 0 && state.For < math.MaxInt64 && Until(&text, now.Add(state.For)).Paused {
			t.Fatalf("%q pauses on after its end", text)
		}
	})
}
