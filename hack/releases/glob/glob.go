// SPDX-License-Identifier: Apache-2.0

// Package glob compares texts with patterns of lists of deliberate changes.
package glob

import (
	"cmp"
	"regexp"
	"strings"
)

// Matches reports whether a text has the form of a pattern, in which "*" stands for any text. An empty pattern matches
// all.
func Matches(pattern, text string) bool {
	form := strings.ReplaceAll(regexp.QuoteMeta(cmp.Or(pattern, "*")), `\*`, ".*")
	return regexp.MustCompile("(?s)^" + form + "$").MatchString(text)
}
