// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"github.com/spf13/cobra"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/flaggroup"
)

// The groups of the flags about machines. `create cluster` has them, too, for its first NodePool.
const (
	MachineGroup         = "Machines of the NodePool"
	VirtualMachineGroup  = "Virtual machines on LXD hosts"
	StaticAddressGroup   = "Static addresses"
	MachineDetailsGroup  = "Installation of machines"
	poolGroup            = "NodePool"
	platformGroupsPrefix = "Platform "
)

// MachineGroups are the groups of the flags about machines, in the order of the help.
var MachineGroups = []string{MachineGroup, VirtualMachineGroup, StaticAddressGroup, MachineDetailsGroup}

// PlatformGroup returns the group of the flags of a platform that have no other group.
func PlatformGroup(platform hyperv1.PlatformType) string {
	return platformGroupsPrefix + string(platform)
}

// showGroups groups the flags in the help.
func showGroups(cmd *cobra.Command, platform hyperv1.PlatformType) {
	flaggroup.Set(cmd.Flags(), poolGroup, "name", "namespace", "cluster-name", "replicas", "node-count",
		"release-image", "arch", "node-upgrade-type", "auto-repair", "node-labels")
	flaggroup.Set(cmd.Flags(), flaggroup.Command, "render", "wait", "timeout", "kubeconfig", "context")
	own := PlatformGroup(platform)
	flaggroup.SetRest(cmd.Flags(), own)
	flaggroup.Show(cmd, append([]string{poolGroup, own}, MachineGroups...)...)
}
