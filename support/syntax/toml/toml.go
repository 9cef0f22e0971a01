// SPDX-License-Identifier: Apache-2.0

// Package toml writes the strings of TOML files, such as containerd's. Go's quoting does not fit, because it has
// escapes that TOML does not support.
package toml

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// String writes text as a basic string. Invalid UTF-8, which TOML does not allow, is replaced by replacement
// characters.
func String(text string) string {
	var quoted strings.Builder
	quoted.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			quoted.WriteRune('\\')
			quoted.WriteRune(r)
		case r == utf8.RuneError || r < ' ' || r == 0x7f:
			fmt.Fprintf(&quoted, `\u%04X`, r)
		default:
			quoted.WriteRune(r)
		}
	}
	quoted.WriteByte('"')
	return quoted.String()
}

// Strings writes an array of basic strings.
func Strings(texts ...string) string {
	all := make([]string, 0, len(texts))
	for _, text := range texts {
		all = append(all, String(text))
	}
	return "[" + strings.Join(all, ", ") + "]"
}
