// SPDX-License-Identifier: Apache-2.0

// Package journey walks the road of a user: install, create a cluster, scale it, break it, destroy it, through the same
// programs that a user types. The demo shows it, the end-to-end tests assert it.
package journey

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Timeline remembers how long each stage took.
type Timeline struct {
	stages []Stage
}

// Stage is one finished part of the journey.
type Stage struct {
	// Name says what became true: "control plane available".
	Name string
	// Took is the time from the stage's start.
	Took time.Duration
	// At is the time since the journey began.
	At time.Duration
}

// Add appends a finished stage.
func (t *Timeline) Add(s Stage) { t.stages = append(t.stages, s) }

// Took returns how long the named stage took when it was first walked, or zero when it was not.
func (t *Timeline) Took(name string) time.Duration {
	for _, s := range t.stages {
		if s.Name == name {
			return s.Took
		}
	}
	return 0
}

// Print writes the stages as a table.
func (t *Timeline) Print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "STAGE\tTOOK\tSINCE START")
	for _, s := range t.stages {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, seconds(s.Took), seconds(s.At))
	}
	w.Flush()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

// indent puts two spaces before each line of text.
func indent(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return "  " + strings.Join(lines, "\n  ") + "\n"
}
