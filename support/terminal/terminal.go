// SPDX-License-Identifier: Apache-2.0

// Package terminal makes text from a cluster safe to print. Names, conditions, events and logs may contain text that a
// tenant, a guest or a MAAS wrote; a terminal would execute the escape sequences in it.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns text with each character that could control a terminal written as an escape such as \x1b. Line feeds
// and tabs stay.
func Clean(text string) string { return clean(text, "\n\t") }

// Line is Clean for text that must stay on one line: line feeds become \n, and tabs become \t.
func Line(text string) string { return clean(text, "") }

func clean(text, keep string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !harmless(r, keep) }) < 0 {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case harmless(r, keep):
			out.WriteRune(r)
		default:
			out.WriteString(escape(r))
		}
		text = text[size:]
	}
	return out.String()
}

func harmless(r rune, keep string) bool { return strings.ContainsRune(keep, r) || Harmless(r) }

// Harmless reports whether a terminal only displays a character. Format characters (Cf) are not harmless: they reverse
// or hide the text around them.
func Harmless(r rune) bool { return unicode.IsGraphic(r) && !unicode.In(r, unicode.Zl, unicode.Zp) }

func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// writer cleans the text before it writes to another writer.
type writer struct {
	to io.Writer
	// partial is the beginning of a UTF-8 character whose remaining bytes are not written yet.
	partial []byte
}

// NewWriter returns a writer that writes Clean text to w.
func NewWriter(w io.Writer) io.Writer { return &writer{to: w} }

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	text := append(w.partial, p...)
	end := len(text)
	for i := max(0, len(text)-utf8.UTFMax+1); i < len(text); i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			end = i
			break
		}
	}
	w.partial = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.to, Clean(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
