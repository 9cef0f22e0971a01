// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// name is a name that users depend on.
type name struct{ kind, text string }

// kinds are the kinds of names with their headings, in the order of the page.
var kinds = []struct{ kind, title, about string }{
	{"condition", "Conditions", "Types of conditions, of all kinds. What they mean: [conditions](conditions.md)."},
	{"reason", "Reasons", "Reasons of conditions and of events."},
	{"annotation", "Annotations", "Annotations that users set or read, and that the programs give each other. " +
		"Which of them are protected: [protected metadata](protected-metadata.md)."},
	{"label", "Labels", "Labels, of objects and of nodes."},
	{"metric", "Metrics", "Metrics with each of their labels. What they mean: [metrics](metrics.md)."},
	{"flag", "Flags", "Flags of the commands. What they do: [command line](cli/hypershift.md)."},
	{"exit-code", "Exit codes", "Exit codes of `hypershift` and `hcp`."},
	{"json-field", "Fields of JSON", "Fields of JSON that commands print or read."},
}

const header = `<!-- Made by ` + "`make names`" + `; do not edit. -->
# Names that users depend on

Scripts, manifests, alerts and dashboards use these names. ` + "`make verify`" + ` compares them with those of the last release: a name
that goes has a line under "Removed" or "Deprecated" of the [changelog](../../CHANGELOG.md), after
[the policy](support-policy.md#what-a-version-number-says).
`

const footer = `
## See also

- [Fields of the API](fields.md)
- [Versions and support](support-policy.md)
`

// render returns the page.
func render(names []name) string {
	var out strings.Builder
	out.WriteString(header)
	for _, k := range kinds {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n```text\n", k.title, k.about)
		for _, n := range names {
			if n.kind == k.kind {
				out.WriteString(n.text + "\n")
			}
		}
		out.WriteString("```\n")
	}
	out.WriteString(footer)
	return out.String()
}

// list writes names in the stored form of a release, one per line.
func list(names []name) string {
	var out strings.Builder
	for _, n := range names {
		fmt.Fprintf(&out, "%s %s\n", n.kind, n.text)
	}
	return out.String()
}

func parseList(text string) []name {
	var names []name
	for line := range strings.Lines(text) {
		if kind, text, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			names = append(names, name{kind, text})
		}
	}
	return names
}

var (
	versionHeading = regexp.MustCompile(`^## \[([^\]]+)\]`)
	codeSpan       = regexp.MustCompile("`[^`]+`")
)

// announced returns the code spans under "Removed" and "Deprecated" of all versions after the given one.
func announced(changelog, since string) map[string]bool {
	words := map[string]bool{}
	counts := false
	for line := range strings.Lines(changelog) {
		line = strings.TrimSpace(line)
		if heading := versionHeading.FindStringSubmatch(line); heading != nil && heading[1] == since {
			return words
		}
		if strings.HasPrefix(line, "#") {
			counts = line == "### Removed" || line == "### Deprecated"
			continue
		}
		if counts {
			for _, span := range codeSpan.FindAllString(line, -1) {
				words[strings.Trim(span, "`")] = true
			}
		}
	}
	return words
}

// unannounced returns the names that are gone and that the changelog does not mention. The changelog may contain the
// complete name, or its words, such as the command and the flag in `hypershift install` and `--image`.
func unannounced(before, now []name, words map[string]bool) []name {
	return slices.DeleteFunc(slices.Clone(before), func(n name) bool {
		if slices.Contains(now, n) || words[n.text] {
			return true
		}
		i := strings.LastIndex(n.text, " ")
		return i >= 0 && words[n.text[:i]] && words[n.text[i+1:]]
	})
}
