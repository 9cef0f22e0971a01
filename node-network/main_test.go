// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

func TestValidate(t *testing.T) {
	t.Run("When all is given it should read the networks", func(t *testing.T) {
		g := NewWithT(t)
		networks, err := options{nodeName: "a", clusterNetworks: []string{"10.132.0.9/14", "fd01::/48"}}.validate()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(networks).To(Equal([]netip.Prefix{netip.MustParsePrefix("10.132.0.0/14"), netip.MustParsePrefix("fd01::/48")}))
	})
	t.Run("When nothing is given it should name every flag that is missing", func(t *testing.T) {
		_, err := options{}.validate()
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("--node-name is required"), ContainSubstring("--cluster-network is required"))))
	})
	t.Run("When a network is no CIDR it should quote it and show one", func(t *testing.T) {
		_, err := options{nodeName: "a", clusterNetworks: []string{"10.132.0.0"}}.validate()
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(`"10.132.0.0"`), ContainSubstring("10.132.0.0/14"))))
	})
	t.Run("When the program is run without flags it should fail before it touches the node", func(t *testing.T) {
		t.Setenv("NODE_NAME", "")
		cmd := command()
		cmd.SetArgs(nil)
		NewWithT(t).Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring("--node-name is required")))
	})
}
