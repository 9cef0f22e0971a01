// SPDX-License-Identifier: Apache-2.0

package look

import (
	"io"
	"strings"
	"time"

	"github.com/openshift/hypershift/support/health"
	"github.com/openshift/hypershift/support/terminal"
)

// Span is text in one style.
type Span struct {
	Style terminal.Style
	Text  string
}

// Branch is an object in a tree, with what it owns.
type Branch struct {
	// Line describes the object. Spans are separated by two spaces; empty ones are left out.
	Line []Span
	// Details are lines below the object.
	Details []string
	// Findings are conditions that are not good, and sentences about what cannot be shown.
	Findings []Span
	Children []*Branch
}

// FindingSpan returns the text of a finding in its style; nil for no finding.
func FindingSpan(f *health.Finding, now time.Time) []Span {
	if f == nil {
		return nil
	}
	style := terminal.Bad
	if f.Progress {
		style = terminal.Attention
	}
	return []Span{{style, Text(f, now)}}
}

// Print prints the tree. Text from a cluster cannot start another line.
func (b *Branch) Print(out io.Writer) error { return b.print(out, "", "") }

// print prints a branch whose first line begins with first, and all others with rest.
func (b *Branch) print(out io.Writer, first, rest string) error {
	if err := PrintLine(out, first, b.Line...); err != nil {
		return err
	}
	below := rest + "    "
	if len(b.Children) > 0 {
		below = rest + "│   "
	}
	for _, detail := range b.Details {
		if err := PrintLine(out, below, Span{terminal.Faint, detail}); err != nil {
			return err
		}
	}
	for _, finding := range b.Findings {
		if err := PrintLine(out, below, Span{finding.Style, "! " + finding.Text}); err != nil {
			return err
		}
	}
	for i, child := range b.Children {
		fork, under := "├── ", "│   "
		if i == len(b.Children)-1 {
			fork, under = "└── ", "    "
		}
		if err := child.print(out, rest+fork, rest+under); err != nil {
			return err
		}
	}
	return nil
}

// PrintLine prints spans on one line after an indentation, separated by two spaces. Empty spans are left out.
func PrintLine(out io.Writer, indent string, spans ...Span) error {
	if err := terminal.Print(out, terminal.Plain, indent); err != nil {
		return err
	}
	gaps := ""
	for _, span := range spans {
		if span.Text == "" {
			continue
		}
		if err := terminal.Print(out, terminal.Plain, gaps); err != nil {
			return err
		}
		if err := terminal.Print(out, span.Style, terminal.Line(span.Text)); err != nil {
			return err
		}
		gaps = strings.Repeat(" ", gap)
	}
	return terminal.Print(out, terminal.Plain, "\n")
}
