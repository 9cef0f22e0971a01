// SPDX-License-Identifier: Apache-2.0

// Package journey runs the scenario of a user with the programs that a user runs. The user installs the operator,
// creates a cluster, scales it, breaks it and destroys it. The demo shows the scenario, and the end-to-end tests
// check it.
package journey

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Timeline records how long each stage took.
type Timeline struct {
	stages []Stage
}

// Stage is one completed stage of the scenario.
type Stage struct {
	// Name says what became true, such as "control plane available".
	Name string
	// Took is the time from the stage's start.
	Took time.Duration
	// At is the time since the scenario began.
	At time.Duration
}

// Add appends a finished stage.
func (t *Timeline) Add(s Stage) { t.stages = append(t.stages, s) }

// Took returns how long the first stage with this name took, or zero if there was none.
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

// indent adds two spaces before each line of text.
func indent(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return "  " + strings.Join(lines, "\n  ") + "\n"
}
