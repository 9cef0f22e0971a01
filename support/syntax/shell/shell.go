// SPDX-License-Identifier: Apache-2.0

// Package shell writes text into files that a POSIX shell reads.
package shell

import (
	"strings"

	"github.com/openshift/hypershift/support/syntax"
)

// quoted escapes the characters that are special between double quotes.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`)

// Quoted returns text for use between double quotes. The shell expands nothing in it. Text without special characters is
// returned unchanged.
func Quoted(field, text string) (string, error) {
	if err := syntax.Printable(field, text); err != nil {
		return "", err
	}
	return quoted.Replace(text), nil
}
