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
	// defaultDiskGB is the size of the root disk if none is set, as in upstream CAPMAAS. leastMemoryMiB is the minimum
	// that MAAS composes.
	defaultDiskGB, leastMemoryMiB = 60, 1024
	bytesPerGB, bytesPerGiB       = 1_000_000_000, 1 << 30
)

// Request is a request for a virtual machine and its host. Empty fields request nothing.
type Request struct {
	// Cores, MemoryMiB and DiskGB (10^9 bytes) are exact values.
	Cores, MemoryMiB, DiskGB int
	// Zones holds the allowed zones. The resource pool, architecture and tags apply to the host and the virtual machine.
	Zones         []string
	ResourcePool  string
	Architecture  string
	Tags, NotTags []string
	// VMHost is the name of the host, Store the name of its storage pool.
	VMHost, Project, Profile, Store string
	// Interfaces is in the syntax of MAAS.
	Interfaces string
	// Group is the key by which machines are siblings. Apart requires siblings to be on different hosts.
	Group string
	Apart bool
}

// RequestOf returns the request of a MaasMachine. lxdConfig takes precedence over lxd.vmConfig, and both over the defaults
// of the cluster.
func RequestOf(spec infrav1.MaasMachineSpec, cluster *infrav1.MaasCluster) Request {
	config, older := merged(spec.LXDConfig, defaultsOf(cluster)), vmConfigOf(spec.LXD)
	return Request{
		Cores:        max(spec.CPUs(), 1),
		MemoryMiB:    max(spec.MemoryMiB(), leastMemoryMiB),
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

// merged fills each empty field of the machine configuration from the cluster defaults.
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

// diskGB returns the larger of the configured disk size and minDiskSize. lxdConfig takes precedence, since the default
// of lxd.vmConfig cannot be distinguished from an explicit size.
func diskGB(spec infrav1.MaasMachineSpec, config infrav1.LXDMachineConfig, older infrav1.VMConfig) int {
	size := defaultDiskGB
	if older.DiskSize != nil {
		size = *older.DiskSize
	}
	if asked := config.Storage.Size; asked != nil {
		if n, ok := gigabytes(asked.String()); ok {
			size = n
		}
	}
	return max(size, deref(spec.MinDiskSize))
}

// gigabytes parses a size such as 20, 20GB or 20Gi. GiB are rounded up to GB, the unit of MAAS.
func gigabytes(text string) (int, bool) {
	number, binary := strings.CutSuffix(text, "Gi")
	n, err := strconv.Atoi(strings.TrimSuffix(number, "GB"))
	if binary {
		n = (n*bytesPerGiB + bytesPerGB - 1) / bytesPerGB
	}
	return n, err == nil
}

// interfaces returns one interface for each subnet, the first of them on the bridge, and one for each device. MAAS
// creates only the requested interfaces. If none is requested, it creates one and chooses its network.
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

// Size returns the resources that the virtual machine uses on a host.
func (w Request) Size() Size {
	return Size{Cores: w.Cores, MemoryMiB: w.MemoryMiB, DiskBytes: int64(w.DiskGB) * bytesPerGB}
}

// String formats the request: "2 cores, 4096 MiB of memory and a disk of 60 GB".
func (w Request) String() string {
	text := fmt.Sprintf("%s, %d MiB of memory and a disk of %d GB", condition.Count(w.Cores, "core"), w.MemoryMiB, w.DiskGB)
	for _, part := range []string{
		prefixed(" on host ", w.VMHost), prefixed(" in LXD project ", w.Project), prefixed(" in zone ", strings.Join(w.Zones, " or ")),
		prefixed(" in resource pool ", w.ResourcePool), prefixed(" on hosts with tags ", strings.Join(w.Tags, ", ")),
	} {
		text += part
	}
	return text
}
