// SPDX-License-Identifier: Apache-2.0

// Package maas implements platform MAAS for the commands.
package maas

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/flaggroup"
	"github.com/openshift/hypershift/cmd/nodepool"
)

// NodePool is platform MAAS for `create nodepool`, and the machine flags of `create cluster`. A flag that is not set
// leaves its field empty, so that the API's default applies.
type NodePool struct {
	flags *pflag.FlagSet

	identity      string
	machineType   string
	zone          string
	failureDomain string
	resourcePool  string
	image         string
	userData      string
	erase         string
	tags, notTags []string

	minCPU, minMemory, minDisk int32

	wipe          bool
	wipeDevice    string
	wipePartition int32
	ephemeral     bool

	allocate, deploy, boot, join time.Duration

	lxd      lxdFlags
	staticIP staticIPFlags
}

type lxdFlags struct {
	enabled                                    bool
	storagePool, network, profile, project, vm string
	bridge, antiAffinity                       string
	devices                                    []string
	diskSize                                   int32
}

type staticIPFlags struct {
	ip, ipRange, cidr, gateway string
	nameservers                []string
}

// defaultImage is an image that every MAAS provides and that runs nodes of a Kubernetes payload. An OpenShift payload
// needs a custom image: the operator rejects this one there and reports why.
const defaultImage = "ubuntu/noble"

// Type implements nodepool.Platform.
func (*NodePool) Type() hyperv1.PlatformType { return hyperv1.MAASPlatform }

// Example implements nodepool.Platform.
func (*NodePool) Example() string {
	return "--zone az1 --tags gpu"
}

// AddFlags implements nodepool.Platform.
func (p *NodePool) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.identity, "identity-ref", "", "Secret with MAAS credentials (default: the cluster's)")
	flags.StringVar(&p.zone, "zone", "", "MAAS zone of the machines (default: the cluster's, or any)")
	p.addMachineFlags(flags)
}

// addMachineFlags adds the flags that `create cluster` also has.
func (p *NodePool) addMachineFlags(flags *pflag.FlagSet) {
	p.flags = flags
	flags.StringVar(&p.machineType, "machine-type", "", "MAAS tag that stands for a kind of machine")
	flags.StringVar(&p.failureDomain, "failure-domain", "", "another spelling of the zone of the machines")
	flags.StringVar(&p.resourcePool, "resource-pool", "", "MAAS resource pool of the machines (default: any)")
	flags.StringVar(&p.image, "image", defaultImage, "what MAAS installs: Ubuntu or Debian with a Kubernetes payload, with an OpenShift payload the RHCOS image made for it, such as custom/rhcos-4.20")
	flags.StringVar(&p.userData, "user-data-format", "", "what the image reads its first-boot configuration as: Ignition or CloudConfig (default: chosen by the payload and the image)")
	flags.StringSliceVar(&p.tags, "tags", nil, "MAAS tags that each machine must have")
	flags.StringSliceVar(&p.notTags, "not-tags", nil, "MAAS tags that no machine may have")
	flags.Int32Var(&p.minCPU, "min-cpu", 0, "least number of CPU cores (default: chosen by the payload)")
	flags.Int32Var(&p.minMemory, "min-memory", 0, "least memory in MiB (default: chosen by the payload)")
	flags.Int32Var(&p.minDisk, "min-disk-size", 0, "least size of the root disk in GB (default: any)")
	flags.BoolVar(&p.wipe, "disk-wipe", false, "remove the image's helper partition at first boot (default: on with an OpenShift payload)")
	flags.StringVar(&p.wipeDevice, "disk-wipe-device", "", "device that the image was installed on (default /dev/sda)")
	flags.Int32Var(&p.wipePartition, "disk-wipe-partition", 0, "number of the helper partition (default 5)")
	flags.BoolVar(&p.ephemeral, "ephemeral", false, "run the image from memory")
	flags.StringVar(&p.erase, "erase", "", "how the disks of a released machine are erased: None (MAAS's settings), Quick, Secure or Full (default: Quick)")
	flags.DurationVar(&p.allocate, "allocate-timeout", 0, "longest wait for a machine that fits (default 10m)")
	flags.DurationVar(&p.deploy, "deploy-timeout", 0, "longest installation of a machine (default 60m)")
	flags.DurationVar(&p.boot, "boot-timeout", 0, "longest time from installed to configured (default 20m)")
	flags.DurationVar(&p.join, "join-timeout", 0, "longest time from configured to Node (default 15m)")
	p.lxd.addFlags(flags)
	p.staticIP.addFlags(flags)
	groupFlags(flags)
}

// groupFlags groups the machine flags in the help.
func groupFlags(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		switch {
		case strings.HasPrefix(f.Name, "lxd-"):
			flaggroup.Set(flags, nodepool.VirtualMachineGroup, f.Name)
		case strings.HasPrefix(f.Name, "static-ip"):
			flaggroup.Set(flags, nodepool.StaticAddressGroup, f.Name)
		}
	})
	flaggroup.Set(flags, nodepool.MachineGroup, "machine-type", "zone", "failure-domain", "resource-pool", "image",
		"tags", "not-tags", "min-cpu", "min-memory", "min-disk-size")
	flaggroup.Set(flags, nodepool.MachineDetailsGroup, "user-data-format", "disk-wipe", "disk-wipe-device",
		"disk-wipe-partition", "ephemeral", "erase", "allocate-timeout", "deploy-timeout", "boot-timeout", "join-timeout")
}

func (l *lxdFlags) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&l.enabled, "lxd-enabled", false, "compose virtual machines on LXD hosts instead of taking machines")
	flags.StringVar(&l.storagePool, "lxd-storage-pool", "", "storage pool of the LXD host")
	flags.StringVar(&l.network, "lxd-network", "", "MAAS subnet of the virtual machines")
	flags.StringVar(&l.profile, "lxd-profile", "", "LXD profile of the virtual machines")
	flags.StringVar(&l.project, "lxd-project", "", "LXD project (default: the host's)")
	flags.StringVar(&l.vm, "lxd-vm-host", "", "MAAS VM host to compose on (default: the best that fits)")
	flags.Int32Var(&l.diskSize, "lxd-disk-size", 0, "root disk of the virtual machines in GB (default: 60)")
	flags.StringVar(&l.bridge, "lxd-bridge", "", "bridge or interface of the LXD host for the first network interface (default: MAAS's choice)")
	flags.StringSliceVar(&l.devices, "lxd-devices", nil, "bridges or interfaces of the LXD host, each for one more network interface")
	flags.StringVar(&l.antiAffinity, "lxd-anti-affinity", "", "whether two machines of the pool may share a host: Preferred or Required (default: Preferred)")
}

func (s *staticIPFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.ip, "static-ip", "", "address of the one machine of the pool")
	flags.StringVar(&s.ipRange, "static-ip-range", "", "addresses for the machines of the pool, first-last")
	flags.StringVar(&s.cidr, "static-ip-cidr", "", "subnet of the static addresses")
	flags.StringVar(&s.gateway, "static-ip-gateway", "", "gateway of the static addresses (default: MAAS's)")
	flags.StringSliceVar(&s.nameservers, "static-ip-nameservers", nil, "name servers of the machines (default: MAAS's)")
}

// Complete implements nodepool.Platform.
func (p *NodePool) Complete() error {
	if p.zone != "" && p.failureDomain != "" && p.zone != p.failureDomain {
		return errors.New("--zone and --failure-domain name the same thing: set one of them")
	}
	switch hyperv1.UserDataFormat(p.userData) {
	case "", hyperv1.UserDataIgnition, hyperv1.UserDataCloudConfig:
	default:
		return fmt.Errorf("--user-data-format %q: use %s or %s", p.userData, hyperv1.UserDataIgnition, hyperv1.UserDataCloudConfig)
	}
	for _, tag := range p.tags {
		if slices.Contains(p.notTags, tag) {
			return fmt.Errorf("tag %q is in --tags and in --not-tags: no machine can have both", tag)
		}
	}
	if p.ephemeral && p.wipe {
		return errors.New("--ephemeral leaves the disks alone: leave out --disk-wipe")
	}
	if !p.lxd.enabled && !reflect.DeepEqual(p.lxd, lxdFlags{}) {
		return errors.New("--lxd-... flags have an effect with --lxd-enabled only: add it")
	}
	return p.staticIP.check()
}

func (s *staticIPFlags) check() error {
	_, _, isRange := strings.Cut(s.ipRange, "-")
	switch {
	case s.ip != "" && s.ipRange != "":
		return errors.New("--static-ip is for a pool of one, --static-ip-range for more: set one of them")
	case s.ipRange != "" && !isRange:
		return fmt.Errorf("--static-ip-range %q is not of the form first-last", s.ipRange)
	case s.used() && s.cidr == "":
		return errors.New("static addresses need --static-ip-cidr, the subnet that they belong to")
	case s.used() && s.ip == "" && s.ipRange == "":
		return errors.New("--static-ip-... flags need --static-ip or --static-ip-range")
	default:
		return nil
	}
}

func (s *staticIPFlags) used() bool {
	return s.ip != "" || s.ipRange != "" || s.cidr != "" || s.gateway != "" || len(s.nameservers) > 0
}

// Apply implements nodepool.Platform.
func (p *NodePool) Apply(pool *hyperv1.NodePool) {
	platform := &hyperv1.MAASNodePoolPlatform{
		MachineType:     p.machineType,
		Zone:            hyperv1.MAASName(p.zone),
		FailureDomain:   hyperv1.MAASName(p.failureDomain),
		ResourcePool:    hyperv1.MAASName(p.resourcePool),
		Image:           p.image,
		UserDataFormat:  hyperv1.UserDataFormat(p.userData),
		Erase:           p.erase,
		Tags:            namesOf(p.tags),
		NotTags:         namesOf(p.notTags),
		MinCPU:          optional(p.minCPU),
		MinMemory:       optional(p.minMemory),
		MinDiskSize:     optional(p.minDisk),
		AllocateTimeout: duration(p.allocate),
		DeployTimeout:   duration(p.deploy),
		BootTimeout:     duration(p.boot),
		JoinTimeout:     duration(p.join),
		DiskWipe:        p.diskWipe(),
		LXD:             p.lxd.spec(),
		StaticIP:        p.staticIP.spec(),
	}
	if p.identity != "" {
		platform.IdentityRef = &hyperv1.MAASIdentityReference{Name: p.identity}
	}
	if p.ephemeral {
		platform.Ephemeral = ptr.To(true)
	}
	pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.MAASPlatform, MAAS: platform}
}

// diskWipe distinguishes "--disk-wipe=false" from a flag that is not set.
func (p *NodePool) diskWipe() *hyperv1.MAASDiskWipe {
	wipe := &hyperv1.MAASDiskWipe{Device: p.wipeDevice, Partition: p.wipePartition}
	if p.flags != nil && p.flags.Changed("disk-wipe") {
		wipe.Enabled = ptr.To(p.wipe)
	}
	if *wipe == (hyperv1.MAASDiskWipe{}) {
		return nil
	}
	return wipe
}

func (l *lxdFlags) spec() *hyperv1.MAASLXDNodePool {
	if !l.enabled {
		return nil
	}
	return &hyperv1.MAASLXDNodePool{
		Enabled: true, StoragePool: l.storagePool, Network: l.network, Profile: l.profile, Project: l.project,
		VMHost: l.vm, DiskSize: optional(l.diskSize), Bridge: l.bridge, Devices: l.devices, AntiAffinity: l.antiAffinity,
	}
}

func (s *staticIPFlags) spec() *hyperv1.MAASStaticIP {
	if !s.used() {
		return nil
	}
	spec := &hyperv1.MAASStaticIP{IP: s.ip, CIDR: s.cidr, Gateway: s.gateway}
	if first, last, ok := strings.Cut(s.ipRange, "-"); ok {
		spec.Range = &hyperv1.MAASIPRange{Start: first, End: last}
	}
	for _, server := range s.nameservers {
		spec.Nameservers = append(spec.Nameservers, hyperv1.MAASNameserver(server))
	}
	return spec
}

func namesOf(tags []string) []hyperv1.MAASTag {
	var names []hyperv1.MAASTag
	for _, tag := range tags {
		names = append(names, hyperv1.MAASTag(tag))
	}
	return names
}

func optional(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

func duration(d time.Duration) *metav1.Duration {
	if d == 0 {
		return nil
	}
	return &metav1.Duration{Duration: d}
}
