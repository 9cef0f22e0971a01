// SPDX-License-Identifier: Apache-2.0

// Package glob matches texts against the patterns in lists of deliberate changes.
package glob

import (
	"cmp"
	"regexp"
	"strings"
)

// Matches reports whether a text matches a pattern, in which "*" stands for any text. An empty pattern matches
// everything.
func Matches(pattern, text string) bool {
	form := strings.ReplaceAll(regexp.QuoteMeta(cmp.Or(pattern, "*")), `\*`, ".*")
	return regexp.MustCompile("(?s)^" + form + "$").MatchString(text)
}
