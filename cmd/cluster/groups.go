// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"github.com/spf13/cobra"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/flaggroup"
	"github.com/openshift/hypershift/cmd/nodepool"
)

// The groups of flags of `create cluster`, beside those of the platform and of its machines.
const (
	clusterGroup   = "Cluster"
	releaseGroup   = "Release"
	firstPoolGroup = "First NodePool"
	advancedGroup  = "Advanced"
)

// groups has the flags of each group.
var groups = map[string][]string{
	clusterGroup: {
		"name", "namespace", "base-domain", "base-domain-prefix", "kas-dns-name", "ssh-key", "generate-ssh",
		"control-plane-availability-policy", "infra-availability-policy", "etcd-storage-class", "etcd-storage-size",
	},
	releaseGroup: {"release-image", "pull-secret", "additional-trust-bundle", "image-content-sources", "fips"},
	flaggroup.Network: {
		"network-type", "allocate-node-cidrs", "service-cidr", "cluster-cidr", "machine-cidr",
		"external-api-server-address",
		"expose-through-load-balancer", "service-publishing-strategy", "api-server-address", "default-dual",
		"endpoint-access",
	},
	firstPoolGroup: {
		"node-pool-replicas", "arch", "node-upgrade-type", "auto-repair", "node-drain-timeout", "node-volume-detach-timeout",
	},
	advancedGroup: {
		"infra-id", "annotations", "labels", "node-selector", "pods-labels", "pausedUntil", "operator-namespace",
		"control-plane-operator-image",
	},
	flaggroup.Command: {
		"wait", "timeout", "skip-preflight", "render", "render-into", "render-sensitive", "kubeconfig", "context",
	},
}

// showGroups groups the flags in the help. Flags of the platform that have no group of their own are in one that is
// named after the platform.
func showGroups(cmd *cobra.Command, platform hyperv1.PlatformType) {
	for group, names := range groups {
		flaggroup.Set(cmd.Flags(), group, names...)
	}
	own := nodepool.PlatformGroup(platform)
	flaggroup.SetRest(cmd.Flags(), own)
	order := []string{clusterGroup, releaseGroup, own, flaggroup.Network, firstPoolGroup}
	order = append(order, nodepool.MachineGroups...)
	flaggroup.Show(cmd, append(order, advancedGroup)...)
}
