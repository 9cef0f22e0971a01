// SPDX-License-Identifier: Apache-2.0

package lxd

import (
	"fmt"
	"strconv"
	"strings"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

const (
	// defaultDiskGB is the root disk where nobody says a size, as upstream has it; leastMemoryMiB is the least that MAAS composes.
	defaultDiskGB, leastMemoryMiB = 60, 1024
	bytesPerGB                    = 1_000_000_000
)

// Wish says which virtual machine is wanted, and on which hosts. Empty fields ask for nothing.
type Wish struct {
	// Cores, MemoryMiB and DiskGB (10^9 bytes) are exact.
	Cores, MemoryMiB, DiskGB int
	// Zones are those that will do. Hosts and virtual machine are of the resource pool, the architecture and the tags.
	Zones         []string
	ResourcePool  string
	Architecture  string
	Tags, NotTags []string
	// VMHost and Store are names, of the host and of its storage pool.
	VMHost, Project, Profile, Store string
	// Interfaces are in MAAS's words for them.
	Interfaces string
	// Group is what machines are siblings by; Apart keeps them on different hosts.
	Group string
	Apart bool
}

// WishOf is what a MaasMachine asks for; lxdConfig wins over lxd.vmConfig, and both over the defaults of the cluster.
func WishOf(spec infrav1.MaasMachineSpec, cluster *infrav1.MaasCluster) Wish {
	config, older := merged(spec.LXDConfig, defaultsOf(cluster)), vmConfigOf(spec.LXD)
	return Wish{
		Cores:        max(deref(spec.MinCPU), 1),
		MemoryMiB:    max(deref(spec.MinMemory), leastMemoryMiB),
		DiskGB:       diskGB(spec, config, older),
		ResourcePool: deref(spec.ResourcePool),
		Architecture: spec.Arch,
		Tags:         spec.Tags,
		NotTags:      spec.NotTags,
		VMHost:       config.VMHost,
		Project:      config.Project,
		Profile:      config.Profile,
		Store:        store(config, older),
		Interfaces:   interfaces(config.Network, older.Network),
		Apart:        config.AntiAffinity == infrav1.AntiAffinityRequired,
	}
}

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

func defaultsOf(cluster *infrav1.MaasCluster) infrav1.LXDMachineConfig {
	if cluster == nil || cluster.Spec.LXDConfig == nil {
		return infrav1.LXDMachineConfig{}
	}
	return cluster.Spec.LXDConfig.LXDMachineConfig
}

func vmConfigOf(lxd *infrav1.LXDConfig) infrav1.VMConfig {
	if lxd == nil {
		return infrav1.VMConfig{}
	}
	return deref(lxd.VMConfig)
}

// merged takes each field that the machine leaves empty from the cluster.
func merged(machine *infrav1.LXDMachineConfig, cluster infrav1.LXDMachineConfig) infrav1.LXDMachineConfig {
	own := deref(machine)
	for field, value := range map[*string]string{&own.Profile: cluster.Profile, &own.VMHost: cluster.VMHost, &own.Project: cluster.Project} {
		if *field == "" {
			*field = value
		}
	}
	if own.AntiAffinity == "" {
		own.AntiAffinity = cluster.AntiAffinity
	}
	storage, theirs := deref(own.Storage), deref(cluster.Storage)
	if storage.Size == nil {
		storage.Size = theirs.Size
	}
	if storage.Pool == "" {
		storage.Pool = theirs.Pool
	}
	own.Storage = &storage
	if own.Network == nil {
		own.Network = cluster.Network
	}
	return own
}

func store(config infrav1.LXDMachineConfig, older infrav1.VMConfig) string {
	if config.Storage.Pool != "" {
		return config.Storage.Pool
	}
	return older.StoragePool
}

// diskGB is the largest of what is asked for. The default of lxd.vmConfig can't be told from a size that somebody set to it, so that
// lxdConfig wins.
func diskGB(spec infrav1.MaasMachineSpec, config infrav1.LXDMachineConfig, older infrav1.VMConfig) int {
	size := defaultDiskGB
	if older.DiskSize != nil {
		size = *older.DiskSize
	}
	if asked := config.Storage.Size; asked != nil {
		if n, err := strconv.Atoi(strings.TrimSuffix(asked.String(), "GB")); err == nil {
			size = n
		}
	}
	return max(size, deref(spec.MinDiskSize))
}

// interfaces are one for each subnet, the first of them on the bridge, and one for each device. MAAS makes those that it is asked for and
// no other, and one of its own choice where it is asked for none.
func interfaces(network *infrav1.LXDNetwork, subnets string) string {
	var all []string
	add := func(keys ...string) {
		keys = nonEmpty(keys)
		if len(keys) > 0 {
			all = append(all, fmt.Sprintf("eth%d:%s", len(all), strings.Join(keys, ",")))
		}
	}
	bridge := prefixed("name=", deref(network).Bridge)
	for i, subnet := range strings.Split(subnets, ",") {
		if i > 0 {
			bridge = ""
		}
		add(bridge, prefixed("subnet=", strings.TrimSpace(subnet)))
	}
	for _, device := range deref(network).Devices {
		add(prefixed("name=", device))
	}
	return strings.Join(all, ";")
}

func prefixed(key, value string) string {
	if value == "" {
		return ""
	}
	return key + value
}

func nonEmpty(texts []string) []string {
	var all []string
	for _, text := range texts {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}

// Size is what the virtual machine takes of a host.
func (w Wish) Size() Size {
	return Size{Cores: w.Cores, MemoryMiB: w.MemoryMiB, DiskBytes: int64(w.DiskGB) * bytesPerGB}
}

// String says what is asked for: "2 cores, 4096 MiB of memory and a disk of 60 GB".
func (w Wish) String() string {
	text := fmt.Sprintf("%s, %d MiB of memory and a disk of %d GB", condition.Count(w.Cores, "core"), w.MemoryMiB, w.DiskGB)
	for _, part := range []string{
		prefixed(" on host ", w.VMHost), prefixed(" in LXD project ", w.Project), prefixed(" in zone ", strings.Join(w.Zones, " or ")),
		prefixed(" in resource pool ", w.ResourcePool), prefixed(" on hosts with tags ", strings.Join(w.Tags, ", ")),
	} {
		text += part
	}
	return text
}
