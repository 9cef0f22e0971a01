// SPDX-License-Identifier: Apache-2.0

// Package syntax is shared by the writers of configuration files. Each syntax has a subpackage with one writer. A
// writer refuses a value unless readers get exactly that value back.
package syntax

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error means that a value cannot be written in a syntax. It does not contain the value, which may be secret.
type Error struct {
	// Field names the value for users, such as spec.platform.aws.region.
	Field string
	// Reason describes the problem with the value.
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Reason) }

// Refuse returns an Error for a field.
func Refuse(field, format string, arguments ...any) error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, arguments...)}
}

// Printable refuses text that is not valid UTF-8 or has control characters. Line breaks are the most important ones.
func Printable(field, text string) error {
	if !utf8.ValidString(text) {
		return Refuse(field, "is not valid UTF-8")
	}
	if at := strings.IndexFunc(text, control); at >= 0 {
		return Refuse(field, "has a line break or another control character at byte %d; remove it", at)
	}
	return nil
}

// control reports whether a rune is a control character or one that programs treat as a line break.
func control(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029'
}
