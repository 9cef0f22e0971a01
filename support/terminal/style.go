// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Style is how a terminal displays text.
type Style string

// The styles of our commands. Plain text has no style.
const (
	Plain     Style = ""
	Bold      Style = "1"
	Faint     Style = "2"
	Bad       Style = "31"
	Good      Style = "32"
	Attention Style = "33"
)

// Is reports whether a reader or writer is a terminal. A writer of NewWriter is a terminal if its target is one.
func Is(stream any) bool {
	if w, ok := stream.(*writer); ok {
		return Is(w.to)
	}
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// Styled reports whether a writer displays styles: it is a terminal, and the environment has neither NO_COLOR nor
// TERM=dumb.
func Styled(w io.Writer) bool {
	return Is(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Print writes Clean text in a style. If the writer displays no styles, the text is plain.
func Print(w io.Writer, style Style, text string) error {
	before, after := "", ""
	if style != Plain && Styled(w) {
		before, after = "\x1b["+string(style)+"m", "\x1b[0m"
	}
	if cleaning, ok := w.(*writer); ok {
		w = cleaning.to
	}
	_, err := io.WriteString(w, before+Clean(text)+after)
	return err
}
