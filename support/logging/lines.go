// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/openshift/hypershift/support/terminal"
)

// lineWriter writes each entry of the log as one line, without characters that control a terminal. The encoders escape
// only some of them, and the console encoder writes messages as they are.
type lineWriter struct{ to io.Writer }

// Write implements io.Writer. The logger writes each entry with one call.
func (w lineWriter) Write(entry []byte) (int, error) {
	if _, err := io.WriteString(w.to, escaped(string(bytes.TrimSuffix(entry, []byte("\n"))))+"\n"); err != nil {
		return 0, err
	}
	return len(entry), nil
}

// escaped replaces characters with escapes that are valid in JSON. Tabs separate the columns of the console format.
func escaped(text string) string {
	harmful := func(r rune) bool { return r != '\t' && !terminal.Harmless(r) }
	if strings.IndexFunc(text, harmful) < 0 {
		return strings.ToValidUTF8(text, "\ufffd")
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case !harmful(r):
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		}
	}
	return out.String()
}
