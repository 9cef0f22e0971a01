// SPDX-License-Identifier: Apache-2.0

package toml_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/syntax/toml"
)

// read follows TOML's grammar of basic strings.
func read(t *testing.T, text string) string {
	t.Helper()
	inner, ok := strings.CutPrefix(text, `"`)
	if !ok {
		t.Fatalf("%q is no string", text)
	}
	var value strings.Builder
	for inner != "" && inner[0] != '"' {
		r, size := utf8.DecodeRuneInString(inner)
		if r < ' ' && r != '\t' || r == 0x7f || r == utf8.RuneError && size == 1 {
			t.Fatalf("%q has a character that TOML forbids", text)
		}
		inner = inner[size:]
		if r != '\\' {
			value.WriteRune(r)
			continue
		}
		switch escape := inner[0]; escape {
		case '"', '\\':
			value.WriteByte(escape)
			inner = inner[1:]
		case 'u':
			code, err := strconv.ParseUint(inner[1:5], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			value.WriteRune(rune(code))
			inner = inner[5:]
		default:
			t.Fatalf("%q has the escape %q, which TOML does not know", text, escape)
		}
	}
	if inner != `"` {
		t.Fatalf("%q goes on after the string", text)
	}
	return value.String()
}

func FuzzString(f *testing.F) {
	for _, text := range []string{"", "https://registry.example", "a\"\n[host.\"evil\"]", `\`, "\x00\a\v\x7f",
		"ä\U0001F600", "\xff", "\u2028"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		NewWithT(t).Expect(read(t, toml.String(text))).To(Equal(string([]rune(text))), "%q", text)
	})
}
