// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// defaults are the values for a pool that sets none: the minimum for a node of the distribution, and an image if one is
// known. There is no image for OpenShift that every MAAS has.
type defaults struct {
	cpu, memory int32
	image       string
	wipe        bool
}

var byDistribution = map[releaseinfo.Distribution]defaults{
	releaseinfo.OpenShift:  {cpu: 4, memory: 8192, wipe: true},
	releaseinfo.Kubernetes: {cpu: 2, memory: 2048, image: "custom/kubernetes-node"},
}

// settings returns the pool's MAAS block; an empty one if it is not set.
func settings(pool platform.Pool) hyperv1.MAASNodePoolPlatform {
	if pool.NodePool.Spec.Platform.MAAS == nil {
		return hyperv1.MAASNodePoolPlatform{}
	}
	return *pool.NodePool.Spec.Platform.MAAS
}

// ValidateNodePool rejects settings that the provider cannot fulfil.
func (*Platform) ValidateNodePool(pool platform.Pool) error {
	return errors.Join(validateZone(pool), validateImage(pool), validateUserData(pool), validateAddresses(pool))
}

// validateZone requires a zone in which the cluster's machines may be.
func validateZone(pool platform.Pool) error {
	zone, allowed := zone(pool), spec(pool.HostedCluster).FailureDomains
	if zone == "" || len(allowed) == 0 || slices.Contains(allowed, hyperv1.MAASName(zone)) {
		return nil
	}
	return fmt.Errorf("zone %q of the pool is not one of the HostedCluster's spec.platform.maas.failureDomains, %s: name one of them in "+
		"spec.platform.maas.zone, or add it there", zone, strings.Join(texts(allowed), ", "))
}

// zone returns the zone of the pool's machines, from the pool or else the cluster; empty for any of the failure
// domains. failureDomain is the word of Cluster API for it, and counts if the pool sets no zone.
func zone(pool platform.Pool) string {
	block := settings(pool)
	return cmp.Or(string(block.Zone), string(block.FailureDomain), string(spec(pool.HostedCluster).Zone))
}

// Overridden reports a failureDomain that contradicts the zone. MAAS has zones only.
func (*Platform) Overridden(pool *hyperv1.NodePool) []string {
	block := settings(platform.Pool{NodePool: pool})
	if block.Zone == "" || block.FailureDomain == "" || block.Zone == block.FailureDomain {
		return nil
	}
	return []string{fmt.Sprintf("spec.platform.maas.zone %s counts, and spec.platform.maas.failureDomain %s has no effect: "+
		"MAAS allocates machines by zone; remove one of them", block.Zone, block.FailureDomain)}
}

// validateImage checks that the image fits the distribution. It accepts any image until the payload is known.
func validateImage(pool platform.Pool) error {
	image, field := settings(pool).Image, "spec.platform.maas.image"
	switch {
	case pool.Distribution() == "":
		return nil
	case image == "" && byDistribution[pool.Distribution()].image == "":
		return fmt.Errorf("%s is empty: with an %s release, name the MAAS image that was made for it, such as custom/rhcos-4.20", field, pool.Distribution())
	case distributions.Of(pool.Distribution()).OwnOperators && readsCloudConfig(image):
		return fmt.Errorf("%s is %s, but the nodes of an %s release run CoreOS: name the MAAS image that was made for it, such as custom/rhcos-4.20", field, image, pool.Distribution())
	default:
		return nil
	}
}

func validateAddresses(pool platform.Pool) error {
	static, machines := settings(pool).StaticIP, most(pool.NodePool)
	switch {
	case static == nil:
	case static.Range != nil:
		if size := capacity(static.Range, machines); size < machines {
			return fmt.Errorf("spec.platform.maas.staticIP.range has %d addresses, but the pool may have %d machines: use a larger range", size, machines)
		}
	case machines > 1:
		return fmt.Errorf("spec.platform.maas.staticIP.ip serves one machine, but the pool may have %d: use staticIP.range", machines)
	}
	return nil
}

// capacity counts the addresses of a range, up to enough.
func capacity(r *hyperv1.MAASIPRange, enough int32) int32 {
	first, err1 := netip.ParseAddr(r.Start)
	last, err2 := netip.ParseAddr(r.End)
	if err1 != nil || err2 != nil {
		return 0
	}
	size := int32(0)
	for ip := first; ip.IsValid() && !last.Less(ip) && size < enough; ip = ip.Next() {
		size++
	}
	return size
}

// most returns the maximum number of machines of the pool.
func most(pool *hyperv1.NodePool) int32 {
	if pool.Spec.AutoScaling != nil {
		return pool.Spec.AutoScaling.Max
	}
	return ptr.Deref(pool.Spec.Replicas, 0)
}

// MachineTemplate returns a template with the pool's settings, and the cluster's for the rest.
func (*Platform) MachineTemplate(pool platform.Pool) client.Object {
	block, cluster := settings(pool), spec(pool.HostedCluster)
	base := byDistribution[pool.Distribution()]
	machine := infrav1.MaasMachineSpec{
		FailureDomain:  optional(zone(pool)),
		ResourcePool:   optional(cmp.Or(string(block.ResourcePool), string(cluster.ResourcePool))),
		MinCPU:         ptr.To(int(ptr.Deref(block.MinCPU, base.cpu))),
		MinMemory:      ptr.To(int(ptr.Deref(block.MinMemory, base.memory))),
		MinDiskSize:    number(block.MinDiskSize),
		Tags:           tags(block),
		NotTags:        texts(block.NotTags),
		Arch:           cmp.Or(pool.NodePool.Spec.Arch, hyperv1.ArchitectureAMD64),
		Image:          cmp.Or(block.Image, base.image),
		DeployInMemory: ptr.Deref(block.Ephemeral, false),
		StaticIP:       staticIP(block.StaticIP),
	}
	adjust(&machine, block)
	composeOnLXD(&machine, block.LXD)
	template := &infrav1.MaasMachineTemplate{}
	template.Spec.Template.Spec = machine
	return template
}

// RollingTemplate returns a copy of the template without the fields that are updated in place on existing machines.
func (*Platform) RollingTemplate(template client.Object) client.Object {
	rolling, ok := template.DeepCopyObject().(*infrav1.MaasMachineTemplate)
	if !ok {
		return template
	}
	adjust(&rolling.Spec.Template.Spec, hyperv1.MAASNodePoolPlatform{})
	rolling.Spec.Template.Spec.Erase = nil
	return rolling
}

// MachineCapacity returns the capacity of a machine that MAAS would allocate.
func (*Platform) MachineCapacity(template client.Object) platform.MachineCapacity {
	maas, ok := template.(*infrav1.MaasMachineTemplate)
	if !ok {
		return platform.MachineCapacity{}
	}
	return platform.MachineCapacity{Resources: maas.Status.Capacity, Zone: ptr.Deref(maas.Spec.Template.Spec.FailureDomain, "")}
}

// AdjustMachine sets the pool's timeouts and disk erasure on an existing machine.
func (*Platform) AdjustMachine(pool platform.Pool, obj client.Object) {
	if machine, ok := obj.(*infrav1.MaasMachine); ok {
		adjust(&machine.Spec, settings(pool))
	}
}

// adjust sets the fields that change on existing machines: their timeouts, and how their disks are erased on release.
func adjust(machine *infrav1.MaasMachineSpec, block hyperv1.MAASNodePoolPlatform) {
	machine.Timeouts = infrav1.MachineTimeouts{
		Allocate: block.AllocateTimeout, Deploy: block.DeployTimeout, Boot: block.BootTimeout, Join: block.JoinTimeout,
	}
	machine.Erase = nil
	if mode := eraseMode(block); mode != "" {
		machine.Erase = &infrav1.EraseConfig{Mode: mode}
	}
}

// eraseMode returns Quick if the pool does not set a mode, because the next user of a released machine must not read
// its disks. A machine that runs from memory has not written to its disks, and the disks of a virtual machine are
// deleted with it.
func eraseMode(block hyperv1.MAASNodePoolPlatform) string {
	if block.Erase != "" || ptr.Deref(block.Ephemeral, false) || block.LXD != nil && block.LXD.Enabled {
		return block.Erase
	}
	return "Quick"
}

// MachineTemplates returns an empty MaasMachineTemplateList.
func (*Platform) MachineTemplates() client.ObjectList { return &infrav1.MaasMachineTemplateList{} }

func composeOnLXD(machine *infrav1.MaasMachineSpec, lxd *hyperv1.MAASLXDNodePool) {
	if lxd == nil || !lxd.Enabled {
		return
	}
	machine.ProvisioningMode = infrav1.ProvisioningModeLXD
	// The upstream fields are also set, so that the upstream provider composes virtual machines too.
	machine.LXD = &infrav1.LXDConfig{Enabled: ptr.To(true)}
	if lxd.DiskSize != nil || lxd.StoragePool != "" || lxd.Network != "" {
		machine.LXD.VMConfig = &infrav1.VMConfig{DiskSize: number(lxd.DiskSize), StoragePool: lxd.StoragePool, Network: lxd.Network}
	}
	machine.LXDConfig = &infrav1.LXDMachineConfig{Profile: lxd.Profile, VMHost: lxd.VMHost, Project: lxd.Project,
		AntiAffinity: infrav1.AntiAffinity(lxd.AntiAffinity)}
	if lxd.Bridge != "" || len(lxd.Devices) > 0 {
		machine.LXDConfig.Network = &infrav1.LXDNetwork{Bridge: lxd.Bridge, Devices: lxd.Devices}
	}
	if lxd.DiskSize != nil || lxd.StoragePool != "" {
		machine.LXDConfig.Storage = &infrav1.LXDStorage{Size: gigabytes(lxd.DiskSize), Pool: lxd.StoragePool}
	}
}

func gigabytes(size *int32) *intstr.IntOrString {
	if size == nil {
		return nil
	}
	return &intstr.IntOrString{Type: intstr.Int, IntVal: *size}
}

func staticIP(static *hyperv1.MAASStaticIP) *infrav1.StaticIPConfig {
	if static == nil {
		return nil
	}
	config := &infrav1.StaticIPConfig{
		IP: static.IP, CIDR: static.CIDR, Gateway: static.Gateway, Nameservers: texts(static.Nameservers),
	}
	if static.Range != nil {
		config.Range = &infrav1.IPRange{Start: static.Range.Start, End: static.Range.End}
	}
	return config
}

// tags returns the pool's tags and its machine type, which is a tag as well, in a fixed order.
func tags(block hyperv1.MAASNodePoolPlatform) []string {
	all := texts(block.Tags)
	if block.MachineType != "" && !slices.Contains(all, block.MachineType) {
		all = append(all, block.MachineType)
	}
	slices.Sort(all)
	return all
}

func texts[T ~string](values []T) []string {
	if len(values) == 0 {
		return nil
	}
	all := make([]string, 0, len(values))
	for _, value := range values {
		all = append(all, string(value))
	}
	return all
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func number(value *int32) *int {
	if value == nil {
		return nil
	}
	return ptr.To(int(*value))
}
