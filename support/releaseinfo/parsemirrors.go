// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"fmt"
	"strings"
)

// ParseMirrors parses "source=mirror,...", the format of the environment variable OPENSHIFT_IMG_OVERRIDES. A source may
// occur several times; its mirrors are tried in that order. Empty text and "=" mean none.
func ParseMirrors(text string) ([]Mirror, error) {
	var mirrors []Mirror
	for pair := range strings.SplitSeq(text, ",") {
		pair = strings.TrimSpace(pair)
		if pair == "" || pair == "=" {
			continue
		}
		source, mirror, ok := strings.Cut(pair, "=")
		if !ok || source == "" || mirror == "" {
			return nil, fmt.Errorf("image mirror %q is not of the form source=mirror", pair)
		}
		mirrors = append(mirrors, Mirror{Source: source, Mirrors: []string{mirror}})
	}
	return mirrors, nil
}
