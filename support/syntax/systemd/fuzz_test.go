// SPDX-License-Identifier: Apache-2.0

package systemd_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/syntax/systemd"
)

// read follows systemd.exec(5): a value is between double quotes, and a backslash escapes one of "\`$ in it.
func read(t *testing.T, text string) map[string]string {
	t.Helper()
	variables := map[string]string{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if len(rest) < 2 || rest[0] != '"' {
			t.Fatalf("%q is not quoted", line)
		}
		var value strings.Builder
		i := 1
		for ; i < len(rest) && rest[i] != '"'; i++ {
			if rest[i] == '\\' {
				i++
				if i == len(rest) || !strings.ContainsRune("\"\\`$", rune(rest[i])) {
					t.Fatalf("%q has an escape that systemd does not know", line)
				}
			}
			value.WriteByte(rest[i])
		}
		if i != len(rest)-1 {
			t.Fatalf("%q goes on after its value", line)
		}
		variables[name] = value.String()
	}
	return variables
}

func FuzzEnvironmentFile(f *testing.F) {
	for _, value := range []string{"http://user:pa$$w\"ord@proxy.example:3128", "a\nLD_PRELOAD=/evil.so", `a\`, "`id`",
		"", "ä", "\xff", "a\x00b"} {
		f.Add("HTTP_PROXY", value)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		text, err := systemd.EnvironmentFile(systemd.Variable{Field: "spec.proxy", Name: name, Value: value},
			systemd.Variable{Name: "LAST", Value: "1"})
		if err != nil {
			return
		}
		want := map[string]string{name: value}
		want["LAST"] = "1"
		NewWithT(t).Expect(read(t, string(text))).To(Equal(want))
	})
}

func TestEnvironmentFile(t *testing.T) {
	_, err := systemd.EnvironmentFile(systemd.Variable{Field: "spec.proxy", Name: "HTTP_PROXY", Value: "hunter2\n"})
	NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("spec.proxy "), Not(ContainSubstring("hunter2")))))
}
