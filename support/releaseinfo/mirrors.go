// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mirror lists alternative locations of the images below a source.
type Mirror struct {
	// Source is a registry, a repository, or a folder of repositories.
	Source string
	// Mirrors are tried in order, before the source itself.
	Mirrors []string
	// Only forbids the source itself.
	Only bool
}

// ParseOverrides parses "source=destination,...", the format of the flag --registry-overrides. Empty text and "=" mean
// none.
func ParseOverrides(text string) (map[string]string, error) {
	overrides := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		pair = strings.TrimSpace(pair)
		if pair == "" || pair == "=" {
			continue
		}
		source, destination, ok := strings.Cut(pair, "=")
		if !ok || source == "" || destination == "" {
			return nil, fmt.Errorf("registry override %q is not of the form source=destination", pair)
		}
		overrides[source] = destination
	}
	return overrides, nil
}

// Override replaces the longest matching prefix of image with its destination. A prefix matches complete path elements
// only.
func Override(image string, overrides map[string]string) string {
	sources := slices.Sorted(maps.Keys(overrides))
	slices.SortStableFunc(sources, func(a, b string) int { return len(b) - len(a) })
	for _, source := range sources {
		if replaced, ok := replacePrefix(image, source, overrides[source]); ok {
			return replaced
		}
	}
	return image
}

func replacePrefix(image, source, destination string) (string, bool) {
	rest, ok := strings.CutPrefix(image, source)
	if !ok || (rest != "" && !strings.ContainsAny(rest[:1], "/:@")) {
		return "", false
	}
	return destination + rest, true
}

// candidates lists the pull specs to try for an image: its mirrors in order, then the image itself unless the source is
// forbidden.
func candidates(image string, mirrors []Mirror) []string {
	var specs []string
	forbidden := false
	for _, m := range mirrors {
		for _, destination := range m.Mirrors {
			if spec, ok := replacePrefix(image, m.Source, destination); ok {
				specs = append(specs, spec)
				forbidden = forbidden || m.Only
			}
		}
	}
	if forbidden {
		return specs
	}
	return append(specs, image)
}
