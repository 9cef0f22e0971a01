// SPDX-License-Identifier: Apache-2.0

package tenantlimits

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const (
	kubevirtField = "spec.platform.kubevirt."
	diskField     = kubevirtField + "rootVolume.diskImage.containerDiskImage"
)

// NodePool returns a message for each setting of a pool that is not allowed; none for nil Limits.
func (l *Limits) NodePool(pool *hyperv1.NodePool) []string {
	if l == nil {
		return nil
	}
	refusals := l.image("spec.release.image", pool.Spec.Release.Image)
	if block := pool.Spec.Platform.Kubevirt; block != nil {
		refusals = append(refusals, l.virtualMachines(pool, block)...)
	}
	slices.Sort(refusals)
	return refusals
}

// virtualMachines returns a message for each setting of virtual machines' pods that is not allowed.
func (l *Limits) virtualMachines(pool *hyperv1.NodePool, block *hyperv1.KubevirtNodePoolPlatform) []string {
	var refusals []string
	if volume := block.RootVolume; volume != nil && volume.Image != nil {
		refusals = append(refusals, l.image(diskField, ptr.Deref(volume.Image.ContainerDiskImage, ""))...)
	}
	for key := range block.NodeSelector {
		if !allows(l.NodeLabels, key) {
			refusals = append(refusals, unknownLabel(kubevirtField+"nodeSelector", key))
		}
	}
	for _, network := range block.AdditionalNetworks {
		if !l.allowsNetwork(pool, network.Name) {
			refusals = append(refusals, fmt.Sprintf(
				"%sadditionalNetworks: %s is none of --allowed-kubevirt-networks of `hypershift install`", kubevirtField,
				network.Name))
		}
	}
	for _, device := range block.KubevirtHostDevices {
		if !allows(l.HostDevices, device.DeviceName) {
			refusals = append(refusals, fmt.Sprintf(
				"%shostDevices: %s is none of --allowed-host-devices of `hypershift install`", kubevirtField, device.DeviceName))
		}
	}
	return refusals
}

// allowsNetwork reports whether a network is allowed. Networks of the hosted namespace, which is the default for a name
// without a namespace, and of the tenant's namespace always are.
func (l *Limits) allowsNetwork(pool *hyperv1.NodePool, network string) bool {
	own := []string{pool.Namespace + "/", pool.Namespace + "-" + pool.Spec.ClusterName + "/"}
	return !strings.Contains(network, "/") || hasPrefix(network, own) || allows(l.Networks, network)
}
