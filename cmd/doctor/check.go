// SPDX-License-Identifier: Apache-2.0

// Package doctor checks whether a site can run hosted clusters, and finds out why an existing one does not run. Its
// checks only read, and each of them has a time limit.
package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/openshift/hypershift/support/terminal"
)

// Status is the outcome of a check in one word. The words are part of the JSON output.
type Status string

// The statuses of a check.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failed  Status = "failed"
	// Skipped means that the check could not run, for the reason in its message.
	Skipped Status = "skipped"
)

// Outcome is what a check found.
type Outcome struct {
	Status Status
	// Message describes what was found, and Remedy what to do about it; Remedy may be empty.
	Message, Remedy string
	// blocks makes a warning skip the checks that need this one.
	blocks bool
	// unreached means that a server did not answer this computer. It may answer others.
	unreached bool
}

// Result is the outcome of a named check. The JSON field names are stable.
type Result struct {
	// Part is the part of the site, such as "maas", or the kind of an object.
	Part string `json:"part"`
	// Check is the name of the check, or of the object.
	Check   string `json:"check"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// Check is one check of a site.
type Check struct {
	// Part and Name identify the check.
	Part, Name string
	// Needs is a check that must have run before, as "part name"; empty means none.
	Needs string
	// Limit is the time limit; zero means ten seconds.
	Limit time.Duration
	// Run reads what the check is about.
	Run func(ctx context.Context) Outcome
}

// defaultLimit is the time limit of a check that sets none.
const defaultLimit = 10 * time.Second

func ok(format string, args ...any) Outcome {
	return Outcome{Status: OK, Message: fmt.Sprintf(format, args...)}
}

func warn(remedy, format string, args ...any) Outcome {
	return Outcome{Status: Warning, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

func failed(remedy, format string, args ...any) Outcome {
	return Outcome{Status: Failed, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

func skipped(remedy, format string, args ...any) Outcome {
	return Outcome{Status: Skipped, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

// result names an outcome. Names and messages may come from other users: they become single lines of harmless text.
func (o Outcome) result(part, name string) Result {
	return Result{
		Part: line(part), Check: line(name), Status: o.Status, Message: line(o.Message), Remedy: line(o.Remedy),
	}
}

// maxText is the maximum length of a message, in bytes. Messages of other programs may be longer.
const maxText = 1500

func line(text string) string {
	text = strings.Join(strings.Fields(terminal.Clean(text)), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return terminal.Line(text)
}

// Run runs the checks in order until the context ends.
func Run(ctx context.Context, checks []Check) []Result {
	results := make([]Result, 0, len(checks))
	blocked := map[string]bool{}
	for _, check := range checks {
		outcome := skipped("", "not checked: it needs the check %q, which did not succeed", check.Needs)
		if !blocked[check.Needs] {
			outcome = check.run(ctx)
		}
		if outcome.blocks || outcome.Status == Failed || outcome.Status == Skipped {
			blocked[check.Part+" "+check.Name] = true
		}
		results = append(results, outcome.result(check.Part, check.Name))
	}
	return results
}

// run runs one check. A defect of a check becomes its outcome and does not end the others.
func (c Check) run(ctx context.Context) (outcome Outcome) {
	limit := c.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if defect := recover(); defect != nil {
			outcome = failed("report this defect of the command", "the check itself failed: %v", defect)
		}
	}()
	return c.Run(ctx)
}

// downgrade returns the check with a warning in place of a failure that is selected.
func downgrade(check Check, selected func(Outcome) bool) Check {
	run := check.Run
	check.Run = func(ctx context.Context) Outcome {
		outcome := run(ctx)
		if outcome.Status == Failed && selected(outcome) {
			outcome.Status, outcome.blocks = Warning, true
		}
		return outcome
	}
	return check
}
