// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// jsonOutput is the value of --output for JSON.
const jsonOutput = "json"

// Report is the JSON output of the command. Its field names are stable.
type Report struct {
	// Status is the worst status of the checks that ran.
	Status Status `json:"status"`
	// Cause is the first cause of the problems of a cluster; empty if there is none.
	Cause  string   `json:"cause,omitempty"`
	Checks []Result `json:"checks"`
}

func newReport(checks []Result, cause string) Report {
	report := Report{Status: Skipped, Cause: cause, Checks: checks}
	for _, status := range []Status{OK, Warning, Failed} {
		if report.count(status) > 0 {
			report.Status = status
		}
	}
	return report
}

func (r Report) count(status Status) int {
	n := 0
	for _, check := range r.Checks {
		if check.Status == status {
			n++
		}
	}
	return n
}

// finish prints the report. It returns an error if a check failed.
func (r Report) finish(w io.Writer, output string) error {
	var err error
	if output == jsonOutput {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(r)
	} else {
		err = r.table(w)
	}
	if n := r.count(Failed); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d checks failed", n, len(r.Checks)))
	}
	return err
}

// table prints one line for each check, and its remedy below.
func (r Report) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STATUS\tPART\tCHECK\tFINDING")
	for _, check := range r.Checks {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", check.Status, check.Part, check.Check, check.Message)
		if check.Remedy != "" {
			fmt.Fprintf(t, "\t\t\t-> %s\n", check.Remedy)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Cause != "" {
		fmt.Fprintf(w, "\nFirst cause: %s\n", r.Cause)
	}
	var counts []string
	for _, status := range []Status{OK, Warning, Failed, Skipped} {
		counts = append(counts, fmt.Sprintf("%d %s", r.count(status), status))
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(counts, ", "))
	return err
}

// Preflight prints each warning of the results in one line. It returns an error that has all failures and the flag that
// skips the checks.
func Preflight(results []Result, stderr io.Writer) error {
	var failures []string
	for _, r := range results {
		text := fmt.Sprintf("%s %s: %s", r.Part, r.Check, r.Message)
		if r.Remedy != "" {
			text += "; " + r.Remedy
		}
		switch r.Status {
		case Warning:
			fmt.Fprintf(stderr, "Warning: %s\n", text)
		case Failed:
			failures = append(failures, text)
		case OK, Skipped:
		}
	}
	if len(failures) == 0 {
		return nil
	}
	return fmt.Errorf("the cluster could not run: %s; fix this, or add --skip-preflight to create the cluster anyway",
		strings.Join(failures, "; "))
}
