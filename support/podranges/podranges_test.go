// SPDX-License-Identifier: Apache-2.0

package podranges_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/support/podranges"
)

func networks(plugin hyperv1.NetworkType, services string, pods ...hyperv1.ClusterNetworkEntry) *hyperv1.ClusterNetworking {
	return &hyperv1.ClusterNetworking{NetworkType: plugin, ClusterNetwork: pods,
		ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: *ipnet.MustParseCIDR(services)}}}
}

func pods(cidr string, prefix int32) hyperv1.ClusterNetworkEntry {
	return hyperv1.ClusterNetworkEntry{CIDR: *ipnet.MustParseCIDR(cidr), HostPrefix: prefix}
}

func allocated(n *hyperv1.ClusterNetworking) *hyperv1.ClusterNetworking {
	n.AllocateNodeCIDRs = ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
	return n
}

const (
	v4, v6 = "172.31.0.0/16", "fd02::/112"
	ovn    = hyperv1.OVNKubernetes
)

func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		networks              *hyperv1.ClusterNetworking
		kubernetes, openshift string
	}{
		"the default network":                    {networks(ovn, v4, pods("10.132.0.0/14", 0)), "", ""},
		"a network for one node":                 {networks(ovn, v4, pods("10.132.0.0/23", 0)), "", ""},
		"a network smaller than the range":       {networks(ovn, v4, pods("10.132.0.0/24", 0)), "set hostPrefix to more than 24", "set hostPrefix to more than 24"},
		"a small network with a host prefix":     {networks(ovn, v4, pods("10.132.0.0/24", 26)), "", ""},
		"a small network of Calico":              {networks(hyperv1.Calico, v4, pods("10.132.0.0/24", 0)), "set hostPrefix to more than 24", ""},
		"a small network of another plugin":      {networks(hyperv1.Other, v4, pods("10.132.0.0/24", 0)), "", ""},
		"a small network that is allocated":      {allocated(networks(hyperv1.Other, v4, pods("10.132.0.0/24", 0))), "set hostPrefix to more than 24", "set hostPrefix to more than 24"},
		"an IPv6 network with 65536 ranges":      {networks(ovn, v6, pods("fd01::/48", 0)), "", ""},
		"an IPv6 network with more ranges":       {networks(ovn, v6, pods("fd01::/40", 0)), "set hostPrefix to at most 56, or choose a network of /48 to /64", ""},
		"an IPv6 network with small ranges":      {networks(ovn, v6, pods("fd01::/48", 120)), "set hostPrefix to at most 64, or choose a network of /104 to /120", ""},
		"an IPv6 network beside IPv4 Services":   {networks(ovn, v4, pods("fd01::/48", 0)), "Services have addresses of 172.31.0.0/16", "Services have addresses of 172.31.0.0/16"},
		"two families beside IPv4 Services":      {networks(ovn, v4, pods("fd01::/48", 0), pods("10.132.0.0/14", 0)), "", ""},
		"another family, with the user's plugin": {networks(hyperv1.Other, v4, pods("fd01::/48", 0)), "", ""},
		"no cluster network, which is valid":     {networks(ovn, v4), "", ""},
	} {
		for release, want := range map[string]string{"Kubernetes": tc.kubernetes, "OpenShift": tc.openshift} {
			t.Run(name+" with a release of "+release, func(t *testing.T) {
				g, err := NewWithT(t), errors.Join(podranges.Faults(tc.networks, release == "Kubernetes")...)
				if want == "" {
					g.Expect(err).NotTo(HaveOccurred())
					return
				}
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			})
		}
	}
}

func TestNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		networks *hyperv1.ClusterNetworking
		nodes    int
		known    bool
	}{
		"the default network":                     {networks(ovn, v4, pods("10.132.0.0/14", 0)), 512, true},
		"the smaller one of two networks decides": {networks(ovn, v4, pods("10.132.0.0/22", 24), pods("fd01::/48", 0)), 4, true},
		"a network smaller than the range":        {networks(ovn, v4, pods("10.132.0.0/24", 0)), 0, true},
		"the user's plugin has no ranges":         {networks(hyperv1.Other, v4, pods("10.132.0.0/24", 0)), 0, false},
		"no cluster network is known":             {networks(ovn, v4), 1 << 30, false},
	} {
		t.Run(name, func(t *testing.T) {
			nodes, known := podranges.Nodes(tc.networks, true)
			NewWithT(t).Expect(known).To(Equal(tc.known))
			NewWithT(t).Expect(nodes).To(Equal(tc.nodes))
		})
	}
}
