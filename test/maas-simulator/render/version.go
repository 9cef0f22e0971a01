// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a release of MAAS. The simulator implements the differences between releases.
type Version struct {
	// Text is the version in the response of the version endpoint, for example "3.4.10".
	Text         string
	major, minor int
}

// releases maps each series to its latest release.
var releases = map[string]string{
	"3.2": "3.2.10", "3.3": "3.3.9", "3.4": "3.4.10", "3.5": "3.5.13", "3.6": "3.6.5", "3.7": "3.7.3", "main": "4.0.0",
}

// ParseVersion parses a series such as "3.4", a full version such as "3.4.10", or "main".
func ParseVersion(text string) (Version, error) {
	full, known := releases[text]
	if !known {
		full = text
	}
	parts := strings.SplitN(full, ".", 3)
	if len(parts) < 2 {
		return Version{}, fmt.Errorf("MAAS version %q is not known: use 3.2 to 3.7, or main", text)
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil || releases[fmt.Sprintf("%d.%d", major, minor)] == "" && major != 4 {
		return Version{}, fmt.Errorf("MAAS version %q is not known: use 3.2 to 3.7, or main", text)
	}
	return Version{Text: full, major: major, minor: minor}, nil
}

// AtLeast reports whether the version is the given one or later.
func (v Version) AtLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// VMHosts reports whether the version has VM hosts.
func (v Version) VMHosts() bool { return !v.AtLeast(4, 0) }
