// SPDX-License-Identifier: Apache-2.0

// Package syntax holds what the writers of configuration files have in common. Each syntax has a package below with one
// writer: what it writes is read back as exactly the value that it was given, or it refuses the value.
package syntax

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error says that a value cannot be written in a syntax. It does not repeat the value, which may be secret.
type Error struct {
	// Field names the value for users, such as spec.platform.aws.region.
	Field string
	// Reason says what is wrong with it.
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Reason) }

// Refuse returns an Error for a field.
func Refuse(field, format string, arguments ...any) error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, arguments...)}
}

// Printable refuses text that is not valid UTF-8 or has control characters, of which line breaks are the ones that
// matter most.
func Printable(field, text string) error {
	if !utf8.ValidString(text) {
		return Refuse(field, "is not valid UTF-8")
	}
	if at := strings.IndexFunc(text, control); at >= 0 {
		return Refuse(field, "has a line break or another control character at byte %d; remove it", at)
	}
	return nil
}

// control reports whether a rune is a control character or one that programs take for a line break.
func control(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029'
}
