// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/crds"
)

// misread matches CEL expressions that kube-apiserver 1.31 handles wrongly, unlike newer versions. Its containsCIDR
// does not find 10.133.0.0/16 in 10.132.0.0/14. It also rejects a CRD that compares networks or addresses, since it
// cannot limit the cost of the comparison.
var misread = regexp.MustCompile(`containsCIDR\(|(\bcidr\([^()]*\)|\bip\([^()]*\)|\.ip\(\)|\.masked\(\)) *[!=]=`)

// TestRulesForOldServers checks that no rule uses an expression that kube-apiserver 1.31 misreads. It needs no
// server, unlike `make test-kube-versions`, which does not run for each change.
func TestRulesForOldServers(t *testing.T) {
	for _, folder := range ours {
		loaded, err := crds.Load(folder)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, crd := range loaded {
			t.Run("When kube-apiserver 1.31 reads the rules of "+crd.Name+", it should find no expression that it misreads", func(t *testing.T) {
				g := NewWithT(t)
				text, err := json.Marshal(crd.Spec)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(misread.FindAllString(string(text), -1)).To(BeEmpty())
			})
		}
	}
}

func TestMisread(t *testing.T) {
	for rule, want := range map[string]bool{
		"cidr(a.cidr).containsCIDR(b.cidr)":                true,
		"cidr(a).masked() == cidr(b).masked()":             true,
		"ip(self.start) != ip(self.end)":                   true,
		"cidr(a).ip() == ip(b)":                            true,
		"cidr(a).containsIP(cidr(b).ip())":                 false,
		"cidr(a).ip().family() == 4 ? 32 : 128":            false,
		"cidr(a).prefixLength() == cidr(b).prefixLength()": false,
		"isIP(self) == has(self.x)":                        false,
	} {
		t.Run("When a rule is "+rule+", misread should match only if old servers misread it", func(t *testing.T) {
			NewWithT(t).Expect(misread.MatchString(rule)).To(Equal(want))
		})
	}
}
