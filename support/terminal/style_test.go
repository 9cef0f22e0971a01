// SPDX-License-Identifier: Apache-2.0

package terminal_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"golang.org/x/term"

	"github.com/openshift/hypershift/support/terminal"
)

// shown returns what Print writes to a terminal. The file is the other side of a terminal; what is written there is
// read nowhere, so that the test records it.
type shown struct {
	*os.File
	text bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error)             { return s.text.Write(p) }
func (s *shown) WriteString(text string) (int, error)    { return s.text.WriteString(text) }
func (s *shown) ReadFrom(r io.Reader) (n int64, e error) { return s.text.ReadFrom(r) }

func TestPrint(t *testing.T) {
	file, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil || !term.IsTerminal(int(file.Fd())) {
		t.Skipf("this machine has no pseudo terminals: %v", err)
	}
	t.Cleanup(func() { file.Close() })
	for _, tt := range []struct{ name, noColor, term, want string }{
		{"colours a terminal, and escapes the colours in the text", "", "xterm", "\x1b[31ma\\x1b[32mb\x1b[0m"},
		{"respects NO_COLOR", "1", "xterm", `a\x1b[32mb`},
		{"respects a terminal without colours", "", "dumb", `a\x1b[32mb`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tt.noColor)
			t.Setenv("TERM", tt.term)
			screen := &shown{File: file}
			if err := terminal.Print(terminal.NewWriter(screen), terminal.Bad, "a\x1b[32mb"); err != nil {
				t.Fatal(err)
			}
			if got := screen.text.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("writes plain text to a pipe", func(t *testing.T) {
		t.Setenv("TERM", "xterm")
		var out bytes.Buffer
		if err := terminal.Print(terminal.NewWriter(&out), terminal.Bad, "a"); err != nil || out.String() != "a" {
			t.Errorf("got %q and error %v", out.String(), err)
		}
	})
}
