// SPDX-License-Identifier: Apache-2.0

package ini_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/syntax/ini"
)

// read parses a section strictly: a parser that supports quotes, comments and continued lines must find none.
func read(text string) (section string, pairs [][2]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSuffix(name, "]")
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		pairs = append(pairs, [2]string{strings.TrimSpace(key), strings.TrimSpace(value)})
	}
	return section, pairs
}

func FuzzSection(f *testing.F) {
	for _, value := range []string{
		"eu-north-1", "arn:aws:iam::123456789012:role/demo", "eu-north-1\ncredential_process = /bin/evil", "x\r\n[other]",
		"a # b", "a ; b", " a",
		`"a"`, "", "\u2028credential_process=x", "a\\", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY==",
	} {
		f.Add("region", value)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		text, err := ini.Section("default", ini.Pair{Field: "spec.field", Key: key, Value: value},
			ini.Pair{Key: "last", Value: "1"})
		if err != nil {
			if !strings.Contains(err.Error(), "spec.field") && !strings.Contains(err.Error(), "key") {
				t.Errorf("the error names no field: %v", err)
			}
			return
		}
		if strings.ContainsAny(value, "\"'#;\\ \t\n\r[]") {
			t.Errorf("%q can be read as something else", value)
		}
		g := NewWithT(t)
		section, pairs := read(string(text))
		g.Expect(section).To(Equal("default"))
		g.Expect(pairs).To(Equal([][2]string{{key, value}, {"last", "1"}}))
	})
}

func TestSection(t *testing.T) {
	g := NewWithT(t)
	text, err := ini.Section("default", ini.Pair{Key: "region", Value: "eu-north-1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(Equal("[default]\nregion = eu-north-1\n"))
	_, err = ini.Section("default]\n[other")
	g.Expect(err).To(MatchError(ContainSubstring("section name")))
}
