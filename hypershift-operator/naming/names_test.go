// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestInfraIDCharacters checks that an infrastructure ID can be part of host names, whatever characters the cluster's
// name contains.
func TestInfraIDCharacters(t *testing.T) {
	for _, tc := range []struct{ name, cluster, prefix string }{
		{"When all characters are valid, it should keep them", "az-09", "az-09-"},
		{"When characters are next to the valid ranges, it should replace them", "a`b{c/d:e", "a-b-c-d-e-"},
		{"When the name has non-ASCII letters, it should replace them", "Zürich.1", "z-rich-1-"},
		{"When the name has exactly the maximum length, it should keep it", strings.Repeat("a", 21), strings.Repeat("a", 21) + "-"},
		{"When the name ends in several dashes, it should keep only one", "demo---", "demo-"},
		{"When the name ends in letters, it should keep them", "mutated", "mutated-"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, id := NewWithT(t), InfraID(tc.cluster)
			g.Expect(id).To(MatchRegexp("^" + tc.prefix + "[a-z0-9]{5}$"))
			g.Expect(InfraID(tc.cluster)).NotTo(Equal(id), "two clusters of a name are told apart")
		})
	}
}

// TestJoinBounds checks that a name that just fits stays unchanged, because existing objects have it.
func TestJoinBounds(t *testing.T) {
	for _, tc := range []struct {
		name, base, suffix string
		limit              int
		want               string
	}{
		{"When the name has exactly the maximum length, it should only join the parts", "base", "suffix", 11, "base-suffix"},
		{"When only one character of the base fits, it should keep that character", "abcdefghijk", "suffix", 17, "a-" + Hash("abcdefghijk") + "-suffix"},
		{"When no character of the base fits, it should replace the base by its hash", "abcdefghijk", "suffix", 16, "-" + Hash("abcdefghijk") + "-suffix"},
		{"When hash and suffix do not fit, it should hash both parts together", "abcdefghijk", "suffix", 15, "abcdef-" + Hash("abcdefghijk-suffix")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(Join(tc.base, tc.suffix, tc.limit)).To(Equal(tc.want))
		})
	}
}
