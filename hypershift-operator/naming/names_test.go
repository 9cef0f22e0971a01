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
		{"When all characters fit, they should stay", "az-09", "az-09-"},
		{"When they are just beside those that fit, they should be replaced", "a`b{c/d:e", "a-b-c-d-e-"},
		{"When the name is of many alphabets, only what fits should stay", "Zürich.1", "z-rich-1-"},
		{"When the name is just as long as fits, it should stay whole", strings.Repeat("a", 21), strings.Repeat("a", 21) + "-"},
		{"When it ends in dashes, there should be one only", "demo---", "demo-"},
		{"When the name ends in letters, they should stay", "mutated", "mutated-"},
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
		{"When it just fits, it should be joined", "base", "suffix", 11, "base-suffix"},
		{"When room is left for one letter of the base, it should have it", "abcdefghijk", "suffix", 17, "a-" + Hash("abcdefghijk") + "-suffix"},
		{"When room is left for none, the hash should stand for the base", "abcdefghijk", "suffix", 16, "-" + Hash("abcdefghijk") + "-suffix"},
		{"When there is no room for hash and suffix, the hash should stand for both", "abcdefghijk", "suffix", 15, "abcdef-" + Hash("abcdefghijk-suffix")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(Join(tc.base, tc.suffix, tc.limit)).To(Equal(tc.want))
		})
	}
}
