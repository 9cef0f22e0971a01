// SPDX-License-Identifier: Apache-2.0

package terminal_test

import (
	"bytes"
	"testing"
	"unicode"

	"github.com/openshift/hypershift/support/terminal"
)

func TestClean(t *testing.T) {
	for name, tt := range map[string]struct{ in, clean, line string }{
		"keeps plain text":                        {"Node é 漢 ✓", "Node é 漢 ✓", "Node é 漢 ✓"},
		"keeps line feeds and tabs in Clean only": {"a\n\tb", "a\n\tb", `a\n\tb`},
		"escapes a colour":                        {"\x1b[31mred", `\x1b[31mred`, `\x1b[31mred`},
		"escapes the title of a window":           {"\x1b]0;x\x07", `\x1b]0;x\x07`, `\x1b]0;x\x07`},
		"escapes a carriage return":               {"failed\rok", `failed\rok`, `failed\rok`},
		"escapes C1 characters":                   {"\u009b31m", `\u009b31m`, `\u009b31m`},
		"escapes invalid UTF-8":                   {"\x9b31m", `\x9b31m`, `\x9b31m`},
		"escapes reversed text":                   {"\u202egpj", `\u202egpj`, `\u202egpj`},
		"escapes hidden characters":               {"a\u200bb", `a\u200bb`, `a\u200bb`},
		"escapes tags":                            {"\U000e0041", `\U000e0041`, `\U000e0041`},
		"escapes line separators":                 {"a\u2028b", `a\u2028b`, `a\u2028b`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := terminal.Clean(tt.in); got != tt.clean {
				t.Errorf("Clean: got %q, want %q", got, tt.clean)
			}
			if got := terminal.Line(tt.in); got != tt.line {
				t.Errorf("Line: got %q, want %q", got, tt.line)
			}
		})
	}
}

// FuzzClean checks that no input leads to a control or format character.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "a", "\x1b[2J", "\u202e", "\xff\xfe", "\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, r := range terminal.Line(in) {
			if unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) {
				t.Errorf("%q leads to %q", in, r)
			}
		}
	})
}

func TestWriter(t *testing.T) {
	text := "a\x1b[31m漢\u202eé\n"
	for size := 1; size < 5; size++ {
		var out bytes.Buffer
		w := terminal.NewWriter(&out)
		for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
			if _, err := w.Write([]byte(rest[:min(size, len(rest))])); err != nil {
				t.Fatal(err)
			}
		}
		if want := terminal.Clean(text); out.String() != want {
			t.Errorf("in pieces of %d bytes: got %q, want %q", size, out.String(), want)
		}
	}
}
