// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// change is the value of one part in two releases; empty if a release does not have it.
type change struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// difference lists the parts in which two releases differ.
type difference struct {
	Release    change            `json:"release"`
	Version    change            `json:"version"`
	Versions   map[string]change `json:"componentVersions"`
	Components map[string]change `json:"components"`
}

func newDiffCommand() *cobra.Command {
	return newPrintCommand(
		&cobra.Command{
			Use: "diff <release image> <release image>", Short: "Print what differs between two release payloads",
			Example: "  hypershift release diff registry.example.com/release:1.35.4 registry.example.com/release:1.36.3",
		},
		2, "name two release images, e.g. hypershift release diff registry.example.com/release:1.35.4 registry.example.com/release:1.36.3",
		func(w io.Writer, releases []*releaseinfo.ReleaseImage, output string) error {
			return compare(releases[0], releases[1]).print(w, output)
		})
}

func compare(from, to *releaseinfo.ReleaseImage) difference {
	return difference{
		Release:    change{from.PullSpec(), to.PullSpec()},
		Version:    change{from.Version(), to.Version()},
		Versions:   changes(from.ComponentVersions(), to.ComponentVersions()),
		Components: changes(from.ComponentImages(), to.ComponentImages()),
	}
}

func changes(from, to map[string]string) map[string]change {
	all := map[string]change{}
	for name, was := range from {
		if to[name] != was {
			all[name] = change{From: was, To: to[name]}
		}
	}
	for name, is := range to {
		if from[name] == "" {
			all[name] = change{To: is}
		}
	}
	return all
}

func (d difference) print(w io.Writer, output string) error {
	switch output {
	case "":
		return d.printText(w)
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(d)
	}
	return exit.UsageError(fmt.Errorf("--output %q: use json", output))
}

func (d difference) printText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\tFROM\tTO\nImage\t%s\t%s\nVersion\t%s\t%s\n", d.Release.From, d.Release.To, d.Version.From, d.Version.To)
	for _, section := range []struct {
		title   string
		changes map[string]change
	}{{"PART", d.Versions}, {"COMPONENT", d.Components}} {
		if len(section.changes) == 0 {
			continue
		}
		fmt.Fprintf(table, "\n%s\tFROM\tTO\n", section.title)
		for _, name := range slices.Sorted(maps.Keys(section.changes)) {
			fmt.Fprintf(table, "%s\t%s\t%s\n", name, orNone(section.changes[name].From), orNone(section.changes[name].To))
		}
	}
	if len(d.Versions)+len(d.Components) == 0 {
		fmt.Fprint(table, "\nThey are made of the same images.\n")
	}
	return table.Flush()
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
