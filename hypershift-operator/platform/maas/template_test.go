// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func testPool(distribution releaseinfo.Distribution, block hyperv1.MAASNodePoolPlatform) platform.Pool {
	var release *releaseinfo.ReleaseImage
	if distribution != "" {
		release = releaseinfo.New("", releaseinfo.Payload{Distribution: distribution})
	}
	return platform.Pool{
		HostedCluster: testCluster().HostedCluster, Release: release,
		NodePool: &hyperv1.NodePool{Spec: hyperv1.NodePoolSpec{Replicas: ptr.To[int32](2),
			Platform: hyperv1.NodePoolPlatform{Type: hyperv1.MAASPlatform, MAAS: &block}}},
	}
}

func machineSpec(t *testing.T, pool platform.Pool) infrav1.MaasMachineSpec {
	t.Helper()
	template, ok := (&Platform{}).MachineTemplate(pool).(*infrav1.MaasMachineTemplate)
	NewWithT(t).Expect(ok).To(BeTrue())
	return template.Spec.Template.Spec
}

func TestMachineTemplate(t *testing.T) {
	t.Run("When nothing is set, it should use the distribution's minimum requirements", func(t *testing.T) {
		g := NewWithT(t)
		kubernetes := machineSpec(t, testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{}))
		g.Expect(kubernetes.MinCPU).To(HaveValue(Equal(2)))
		g.Expect(kubernetes.Image).To(Equal("custom/kubernetes-node"))
		g.Expect(kubernetes.Arch).To(Equal("amd64"))
		openshift := machineSpec(t, testPool(releaseinfo.OpenShift, hyperv1.MAASNodePoolPlatform{Image: "custom/rhcos"}))
		g.Expect(openshift.MinCPU).To(HaveValue(Equal(4)))
		g.Expect(openshift.MinMemory).To(HaveValue(Equal(8192)))
	})
	t.Run("When every field is set, it should use every field", func(t *testing.T) {
		g := NewWithT(t)
		minute := &metav1.Duration{Duration: time.Minute}
		got := machineSpec(t, testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{
			MachineType: "r650", Zone: "az2", Tags: []hyperv1.MAASTag{"ssd", "gpu"}, NotTags: []hyperv1.MAASTag{"bad"}, ResourcePool: "pool",
			MinCPU: ptr.To[int32](8), MinMemory: ptr.To[int32](4096), MinDiskSize: ptr.To[int32](100), Image: "ubuntu/noble",
			LXD: &hyperv1.MAASLXDNodePool{Enabled: true, StoragePool: "nvme", Network: "net", Profile: "p", Project: "x", VMHost: "h", DiskSize: ptr.To[int32](80),
				Bridge: "br0", Devices: []string{"br1"}, AntiAffinity: "Required"},
			StaticIP:  &hyperv1.MAASStaticIP{Range: &hyperv1.MAASIPRange{Start: "10.0.0.1", End: "10.0.0.9"}, CIDR: "10.0.0.0/24", Gateway: "10.0.0.254", Nameservers: []hyperv1.MAASNameserver{"10.0.0.2"}},
			Ephemeral: ptr.To(true), Erase: "Quick", AllocateTimeout: minute, DeployTimeout: minute, BootTimeout: minute, JoinTimeout: minute,
		}))
		g.Expect(got).To(Equal(infrav1.MaasMachineSpec{
			FailureDomain: ptr.To("az2"), ResourcePool: ptr.To("pool"), MinCPU: ptr.To(8), MinMemory: ptr.To(4096), MinDiskSize: ptr.To(100),
			Tags: []string{"gpu", "r650", "ssd"}, NotTags: []string{"bad"}, Arch: "amd64", Image: "ubuntu/noble", DeployInMemory: true,
			StaticIP: &infrav1.StaticIPConfig{CIDR: "10.0.0.0/24", Gateway: "10.0.0.254", Nameservers: []string{"10.0.0.2"},
				Range: &infrav1.IPRange{Start: "10.0.0.1", End: "10.0.0.9"}},
			Timeouts:         infrav1.MachineTimeouts{Allocate: minute, Deploy: minute, Boot: minute, Join: minute},
			Erase:            &infrav1.EraseConfig{Mode: "Quick"},
			ProvisioningMode: infrav1.ProvisioningModeLXD,
			LXD:              &infrav1.LXDConfig{Enabled: ptr.To(true), VMConfig: &infrav1.VMConfig{DiskSize: ptr.To(80), StoragePool: "nvme", Network: "net"}},
			LXDConfig: &infrav1.LXDMachineConfig{Profile: "p", VMHost: "h", Project: "x", AntiAffinity: infrav1.AntiAffinityRequired,
				Network: &infrav1.LXDNetwork{Bridge: "br0", Devices: []string{"br1"}}, Storage: &infrav1.LXDStorage{Size: ptr.To(intstr.FromInt32(80)), Pool: "nvme"}},
		}))
	})
	for name, tc := range map[string]struct {
		lxd     hyperv1.MAASLXDNodePool
		config  *infrav1.VMConfig
		storage *infrav1.LXDStorage
		network *infrav1.LXDNetwork
	}{
		"When only virtual machines are enabled, it should leave the rest to MAAS": {},
		"When only the disk size is set, it should leave the storage pool to MAAS": {hyperv1.MAASLXDNodePool{DiskSize: ptr.To[int32](80)},
			&infrav1.VMConfig{DiskSize: ptr.To(80)}, &infrav1.LXDStorage{Size: ptr.To(intstr.FromInt32(80))}, nil},
		"When only the storage pool is set, it should leave the disk size to MAAS": {hyperv1.MAASLXDNodePool{StoragePool: "nvme"},
			&infrav1.VMConfig{StoragePool: "nvme"}, &infrav1.LXDStorage{Pool: "nvme"}, nil},
		"When only a network is set, it should leave the disk to MAAS": {hyperv1.MAASLXDNodePool{Network: "net"}, &infrav1.VMConfig{Network: "net"}, nil, nil},
		"When only a bridge is set, it should use that bridge":         {hyperv1.MAASLXDNodePool{Bridge: "br0"}, nil, nil, &infrav1.LXDNetwork{Bridge: "br0"}},
		"When only devices are set, it should use those devices":       {hyperv1.MAASLXDNodePool{Devices: []string{"br1"}}, nil, nil, &infrav1.LXDNetwork{Devices: []string{"br1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g, lxd := NewWithT(t), tc.lxd
			off := machineSpec(t, testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{LXD: &lxd}))
			g.Expect([]any{off.ProvisioningMode, off.LXD, off.LXDConfig}).To(HaveEach(BeZero()), "what is not switched on asks for nothing")
			lxd.Enabled = true
			got := machineSpec(t, testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{LXD: &lxd}))
			g.Expect(got.ProvisioningMode).To(Equal(infrav1.ProvisioningModeLXD))
			g.Expect(got.LXD).To(Equal(&infrav1.LXDConfig{Enabled: ptr.To(true), VMConfig: tc.config}))
			g.Expect(got.LXDConfig).To(Equal(&infrav1.LXDMachineConfig{Storage: tc.storage, Network: tc.network}))
		})
	}
	t.Run("When the pool sets no zone, it should use the cluster's zone", func(t *testing.T) {
		pool := testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{})
		pool.HostedCluster = pool.HostedCluster.DeepCopy()
		pool.HostedCluster.Spec.Platform.MAAS.Zone, pool.HostedCluster.Spec.Platform.MAAS.ResourcePool = "az9", "shared"
		g, got := NewWithT(t), machineSpec(t, pool)
		g.Expect(got.FailureDomain).To(HaveValue(Equal("az9")))
		g.Expect(got.ResourcePool).To(HaveValue(Equal("shared")))
	})
	t.Run("When the MAAS block is missing, it should not panic", func(t *testing.T) {
		pool := testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{})
		pool.NodePool.Spec.Platform.MAAS = nil
		NewWithT(t).Expect(machineSpec(t, pool).Image).To(Equal("custom/kubernetes-node"))
	})
}

func TestRollingTemplate(t *testing.T) {
	t.Run("When only timeouts and the erase mode differ, it should not roll out machines", func(t *testing.T) {
		p := &Platform{}
		plain := p.MachineTemplate(testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{}))
		changed := p.MachineTemplate(testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{
			Erase: "Full", DeployTimeout: &metav1.Duration{Duration: time.Hour}}))
		g := NewWithT(t)
		g.Expect(p.RollingTemplate(changed)).To(Equal(p.RollingTemplate(plain)))
		g.Expect(changed).NotTo(Equal(plain))
	})
}

func TestEraseMode(t *testing.T) {
	for name, tt := range map[string]struct {
		block hyperv1.MAASNodePoolPlatform
		want  *infrav1.EraseConfig
	}{
		"When the pool sets no erase mode, it should use Quick":      {hyperv1.MAASNodePoolPlatform{}, &infrav1.EraseConfig{Mode: "Quick"}},
		"When the pool's erase mode is None, it should use None":     {hyperv1.MAASNodePoolPlatform{Erase: "None"}, &infrav1.EraseConfig{Mode: "None"}},
		"When machines run from memory, it should set no erase mode": {hyperv1.MAASNodePoolPlatform{Ephemeral: ptr.To(true)}, nil},
		"When machines are virtual, it should set no erase mode":     {hyperv1.MAASNodePoolPlatform{LXD: &hyperv1.MAASLXDNodePool{Enabled: true}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, p := NewWithT(t), &Platform{}
			g.Expect(machineSpec(t, testPool(releaseinfo.Kubernetes, tt.block)).Erase).To(Equal(tt.want))
			rolling := p.RollingTemplate(p.MachineTemplate(testPool(releaseinfo.Kubernetes, tt.block))).(*infrav1.MaasMachineTemplate)
			g.Expect(rolling.Spec.Template.Spec.Erase).To(BeNil(), "a default must not roll pools")
		})
	}
}

// TestAdjustMachine checks that each field either replaces machines or is set on the existing ones.
func TestAdjustMachine(t *testing.T) {
	p, hour := &Platform{}, &metav1.Duration{Duration: time.Hour}
	changed := testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{
		Erase: "Full", AllocateTimeout: hour, DeployTimeout: hour, BootTimeout: hour, JoinTimeout: hour,
	})
	wanted := p.MachineTemplate(changed).(*infrav1.MaasMachineTemplate)
	rolling := p.RollingTemplate(wanted).(*infrav1.MaasMachineTemplate)
	machine := &infrav1.MaasMachine{Spec: rolling.Spec.Template.Spec}
	p.AdjustMachine(changed, machine)
	NewWithT(t).Expect(machine.Spec).To(Equal(wanted.Spec.Template.Spec))
}

func TestValidateNodePool(t *testing.T) {
	one := &hyperv1.MAASStaticIP{IP: "10.0.0.1", CIDR: "10.0.0.0/24"}
	ranged := func(start, end string) hyperv1.MAASNodePoolPlatform {
		return hyperv1.MAASNodePoolPlatform{StaticIP: &hyperv1.MAASStaticIP{CIDR: "10.0.0.0/24", Range: &hyperv1.MAASIPRange{Start: start, End: end}}}
	}
	for _, tc := range []struct {
		name         string
		distribution releaseinfo.Distribution
		block        hyperv1.MAASNodePoolPlatform
		want         string
	}{
		{"When a Kubernetes pool sets nothing, it should accept the pool", releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{}, ""},
		{"When an OpenShift pool sets no image, it should return an error", releaseinfo.OpenShift, hyperv1.MAASNodePoolPlatform{}, "spec.platform.maas.image is empty"},
		{"When an OpenShift pool uses Ubuntu, it should return an error", releaseinfo.OpenShift, hyperv1.MAASNodePoolPlatform{Image: "ubuntu/noble"}, "run CoreOS: name the MAAS image"},
		{"When an OpenShift pool uses a CoreOS image, it should accept the pool", releaseinfo.OpenShift, hyperv1.MAASNodePoolPlatform{Image: "custom/rhcos-4.20"}, ""},
		{"When the payload is not known yet, it should accept Ubuntu", "", hyperv1.MAASNodePoolPlatform{Image: "ubuntu/noble"}, ""},
		{"When the payload is not known yet, it should accept an empty image", "", hyperv1.MAASNodePoolPlatform{}, ""},
		{"When two machines would share one static IP, it should return an error", releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{StaticIP: one}, "use staticIP.range"},
		{"When the range has an address for each machine, it should accept the pool", releaseinfo.Kubernetes, ranged("10.0.0.8", "10.0.0.9"), ""},
		{"When the range has more addresses than can be counted, it should accept the pool", releaseinfo.Kubernetes, ranged("fd00::", "fd00::ffff:ffff:ffff:ffff"), ""},
		{"When the range has fewer addresses than the pool has machines, it should return an error", releaseinfo.Kubernetes, ranged("10.0.0.8", "10.0.0.8"),
			"staticIP.range has 1 addresses, but the pool may have 2 machines"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			err := (&Platform{}).ValidateNodePool(testPool(tc.distribution, tc.block))
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestValidateZone(t *testing.T) {
	for _, tc := range []struct {
		name    string
		cluster hyperv1.MAASPlatformSpec
		block   hyperv1.MAASNodePoolPlatform
		want    string
	}{
		{"When the cluster sets no failure domains, it should accept every zone", hyperv1.MAASPlatformSpec{}, hyperv1.MAASNodePoolPlatform{Zone: "az9"}, ""},
		{"When the pool sets no zone, it should accept the pool", hyperv1.MAASPlatformSpec{FailureDomains: []hyperv1.MAASName{"az1", "az2"}}, hyperv1.MAASNodePoolPlatform{}, ""},
		{"When the pool's zone is a failure domain, it should accept the pool", hyperv1.MAASPlatformSpec{FailureDomains: []hyperv1.MAASName{"az1", "az2"}}, hyperv1.MAASNodePoolPlatform{FailureDomain: "az2"}, ""},
		{"When the pool's zone is not a failure domain, it should return an error", hyperv1.MAASPlatformSpec{FailureDomains: []hyperv1.MAASName{"az1", "az2"}}, hyperv1.MAASNodePoolPlatform{Zone: "az9"}, `zone "az9" of the pool is not one of the HostedCluster's spec.platform.maas.failureDomains, az1, az2`},
		{"When the cluster's own zone is not a failure domain, it should return an error", hyperv1.MAASPlatformSpec{Zone: "az9", FailureDomains: []hyperv1.MAASName{"az1"}}, hyperv1.MAASNodePoolPlatform{}, "is not one of"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, pool := NewWithT(t), testPool(releaseinfo.Kubernetes, tc.block)
			pool.HostedCluster = pool.HostedCluster.DeepCopy()
			pool.HostedCluster.Spec.Platform.MAAS.Zone = tc.cluster.Zone
			pool.HostedCluster.Spec.Platform.MAAS.FailureDomains = tc.cluster.FailureDomains
			err := (&Platform{}).ValidateNodePool(pool)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestCustomizeIgnition(t *testing.T) {
	for _, tc := range []struct {
		name         string
		distribution releaseinfo.Distribution
		block        hyperv1.MAASNodePoolPlatform
		want         string
	}{
		{"When a Kubernetes pool sets nothing, it should not wipe", releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{}, ""},
		{"When an OpenShift pool sets nothing, it should wipe partition 5 of sda", releaseinfo.OpenShift, hyperv1.MAASNodePoolPlatform{}, "sgdisk --delete=5 /dev/sda"},
		{"When diskWipe is disabled, it should not wipe", releaseinfo.OpenShift, hyperv1.MAASNodePoolPlatform{DiskWipe: &hyperv1.MAASDiskWipe{Enabled: ptr.To(false)}}, ""},
		{"When diskWipe is enabled, it should wipe the configured partition", releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{
			DiskWipe: &hyperv1.MAASDiskWipe{Enabled: ptr.To(true), Device: "/dev/nvme0n1", Partition: 7}}, "sgdisk --delete=7 /dev/nvme0n1"},
		{"When the machine runs from memory, it should not wipe", releaseinfo.OpenShift, hyperv1.MAASNodePoolPlatform{Ephemeral: ptr.To(true)}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			config := &ignition.Config{}
			(&Platform{}).CustomizeIgnition(testPool(tc.distribution, tc.block), config)
			if tc.want == "" {
				g.Expect(config.Systemd.Units).To(BeEmpty())
				return
			}
			g.Expect(config.Systemd.Units).To(HaveLen(1))
			contents := *config.Systemd.Units[0].Contents
			g.Expect(contents).To(ContainSubstring(tc.want))
			g.Expect(contents).To(ContainSubstring("Type=oneshot"))
			g.Expect(contents).To(And(ContainSubstring("ConditionPathExists=!/var/lib/hypershift/disk-wipe.done"), ContainSubstring(
				"\nExecStartPost=/bin/mkdir -p /var/lib/hypershift\nExecStartPost=/bin/touch /var/lib/hypershift/disk-wipe.done\n")), "it is done once")
			g.Expect(strings.Count(contents, "sgdisk --delete")).To(Equal(1), "no other partition may go")
		})
	}
}
