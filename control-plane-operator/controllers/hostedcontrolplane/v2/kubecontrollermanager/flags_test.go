// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
)

// flagsAbout returns the flags with the given names, in order.
func flagsAbout(hcp *hyperv1.HostedControlPlane, names ...string) []string {
	found := []string{}
	for _, flag := range args(hcp) {
		name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if slices.Contains(names, name) {
			found = append(found, flag)
		}
	}
	return found
}

func pods(cidr string, prefix int32) hyperv1.ClusterNetworkEntry {
	return hyperv1.ClusterNetworkEntry{CIDR: *ipnet.MustParseCIDR(cidr), HostPrefix: prefix}
}

func TestPodNetworks(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*hyperv1.ClusterNetworking)
		want []string
	}{
		{"has one family", func(n *hyperv1.ClusterNetworking) {
			n.ClusterNetwork = []hyperv1.ClusterNetworkEntry{pods("10.132.0.0/14", 24)}
		},
			[]string{"--allocate-node-cidrs=true", "--node-cidr-mask-size=24", "--cluster-cidr=10.132.0.0/14"}},
		{"has no size for nodes", func(n *hyperv1.ClusterNetworking) {
			n.ClusterNetwork = []hyperv1.ClusterNetworkEntry{pods("10.132.0.0/14", 0)}
		},
			[]string{"--allocate-node-cidrs=true", "--node-cidr-mask-size=23", "--cluster-cidr=10.132.0.0/14"}},
		{"is IPv6 and has no size for nodes", func(n *hyperv1.ClusterNetworking) {
			n.ClusterNetwork = []hyperv1.ClusterNetworkEntry{pods("fd01::/48", 0)}
		},
			[]string{"--allocate-node-cidrs=true", "--node-cidr-mask-size=64", "--cluster-cidr=fd01::/48"}},
		{"has both families", func(n *hyperv1.ClusterNetworking) {
			n.ClusterNetwork = []hyperv1.ClusterNetworkEntry{pods("10.132.0.0/14", 24), pods("fd01::/48", 60)}
		}, []string{"--allocate-node-cidrs=true", "--node-cidr-mask-size-ipv4=24", "--node-cidr-mask-size-ipv6=60", "--cluster-cidr=10.132.0.0/14,fd01::/48"}},
		{"has both families, IPv6 first, and no sizes for nodes", func(n *hyperv1.ClusterNetworking) {
			n.ClusterNetwork = []hyperv1.ClusterNetworkEntry{pods("fd01::/48", 0), pods("10.132.0.0/14", 0)}
		}, []string{"--allocate-node-cidrs=true", "--node-cidr-mask-size-ipv6=64", "--node-cidr-mask-size-ipv4=23", "--cluster-cidr=fd01::/48,10.132.0.0/14"}},
		{"comes from the user's plugin", func(n *hyperv1.ClusterNetworking) { n.NetworkType = hyperv1.Other }, []string{"--allocate-node-cidrs=false"}},
		{"comes from the user's plugin, but its addresses from the cluster", func(n *hyperv1.ClusterNetworking) {
			n.NetworkType, n.AllocateNodeCIDRs = hyperv1.Other, ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
		}, []string{"--allocate-node-cidrs=true", "--node-cidr-mask-size=23", "--cluster-cidr=10.132.0.0/14"}},
		{"is not set", func(n *hyperv1.ClusterNetworking) { n.ClusterNetwork = nil }, []string{"--allocate-node-cidrs=true"}},
	} {
		t.Run("When the pod network "+tc.name+" it should set the flags for node CIDRs", func(t *testing.T) {
			hcp := fixture.ControlPlane()
			tc.edit(&hcp.Spec.Networking)
			got := flagsAbout(hcp, "allocate-node-cidrs", "node-cidr-mask-size", "node-cidr-mask-size-ipv4", "node-cidr-mask-size-ipv6", "cluster-cidr")
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

func TestOtherFlags(t *testing.T) {
	services := func(cidrs ...string) *hyperv1.HostedControlPlane {
		hcp := fixture.ControlPlane()
		hcp.Spec.Networking.ServiceNetwork = nil
		for _, cidr := range cidrs {
			hcp.Spec.Networking.ServiceNetwork = append(hcp.Spec.Networking.ServiceNetwork, hyperv1.ServiceNetworkEntry{CIDR: *ipnet.MustParseCIDR(cidr)})
		}
		return hcp
	}
	t.Run("When there are several service networks, it should exclude all of them from node networks", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(flagsAbout(services("172.31.0.0/16", "fd02::/112"), "service-cluster-ip-range")).To(Equal([]string{"--service-cluster-ip-range=172.31.0.0/16,fd02::/112"}))
		g.Expect(flagsAbout(services(), "service-cluster-ip-range")).To(BeEmpty())
	})
	t.Run("When the TLS profile is Modern, it should set no cipher suites", func(t *testing.T) {
		hcp := fixture.ControlPlane()
		g := NewWithT(t)
		g.Expect(flagsAbout(hcp, "tls-cipher-suites")).To(HaveLen(1))
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{
			TLSSecurityProfile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType, Modern: &configv1.ModernTLSProfile{}}}}
		g.Expect(flagsAbout(hcp, "tls-cipher-suites", "tls-min-version")).To(Equal([]string{"--tls-min-version=VersionTLS13"}))
	})
	t.Run("When a kubelet requests a certificate, its lifetime should match the overlap of signers", func(t *testing.T) {
		NewWithT(t).Expect(flagsAbout(fixture.ControlPlane(), "cluster-signing-duration")).To(Equal([]string{"--cluster-signing-duration=168h"}))
	})
}
