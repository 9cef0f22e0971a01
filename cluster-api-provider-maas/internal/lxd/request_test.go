// SPDX-License-Identifier: Apache-2.0

package lxd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/maas"
)

func size(text string) *infrav1.LXDStorage {
	return &infrav1.LXDStorage{Size: ptr.To(intstr.Parse(text))}
}

func TestRequestOf(t *testing.T) {
	clusterOf := func(config infrav1.LXDMachineConfig) *infrav1.MaasCluster {
		return &infrav1.MaasCluster{Spec: infrav1.MaasClusterSpec{LXDConfig: &infrav1.LXDHostConfig{LXDMachineConfig: config}}}
	}
	upstream := func(config infrav1.VMConfig) *infrav1.LXDConfig { return &infrav1.LXDConfig{VMConfig: &config} }
	least := lxd.Request{Cores: 1, MemoryMiB: 1024, DiskGB: 60}
	for name, tc := range map[string]struct {
		spec    infrav1.MaasMachineSpec
		cluster *infrav1.MaasCluster
		want    lxd.Request
	}{
		"When no sizes are set, it should be the minimum of MAAS with the upstream default disk": {infrav1.MaasMachineSpec{}, nil, least},
		"When sizes are set, they should be used": {infrav1.MaasMachineSpec{MinCPU: ptr.To(4), MinMemory: ptr.To(8192), LXDConfig: &infrav1.LXDMachineConfig{Storage: size("20")}}, nil,
			lxd.Request{Cores: 4, MemoryMiB: 8192, DiskGB: 20}},
		"When a size has a unit, it should be parsed":                     {infrav1.MaasMachineSpec{LXDConfig: &infrav1.LXDMachineConfig{Storage: size("30GB")}}, nil, with(least, func(w *lxd.Request) { w.DiskGB = 30 })},
		"When a size is in GiB, it should be rounded up to GB":            {infrav1.MaasMachineSpec{LXDConfig: &infrav1.LXDMachineConfig{Storage: size("20Gi")}}, nil, with(least, func(w *lxd.Request) { w.DiskGB = 22 })},
		"When the sizes have the other spelling, they should be used":     {infrav1.MaasMachineSpec{MinCPUAlias: ptr.To(4), MinMemoryInMB: ptr.To(8192)}, nil, with(least, func(w *lxd.Request) { w.Cores, w.MemoryMiB = 4, 8192 })},
		"When minDiskSize is larger than the storage size, it should win": {infrav1.MaasMachineSpec{MinDiskSize: ptr.To(100), LXDConfig: &infrav1.LXDMachineConfig{Storage: size("30GB")}}, nil, with(least, func(w *lxd.Request) { w.DiskGB = 100 })},
		"When only the upstream fields are set, they should be used":      {infrav1.MaasMachineSpec{LXD: upstream(infrav1.VMConfig{DiskSize: ptr.To(80), StoragePool: "old"})}, nil, with(least, func(w *lxd.Request) { w.DiskGB, w.Store = 80, "old" })},
		"When both lxd and lxdConfig are set, lxdConfig should win":       {infrav1.MaasMachineSpec{LXD: upstream(infrav1.VMConfig{DiskSize: ptr.To(60)}), LXDConfig: &infrav1.LXDMachineConfig{Storage: size("20")}}, nil, with(least, func(w *lxd.Request) { w.DiskGB = 20 })},
		"When only the MaasCluster sets lxdConfig, it should be the default": {infrav1.MaasMachineSpec{}, clusterOf(infrav1.LXDMachineConfig{Project: "p", Profile: "maas", VMHost: "h", AntiAffinity: infrav1.AntiAffinityRequired, Storage: size("25"), Network: &infrav1.LXDNetwork{Bridge: "br0"}}),
			with(least, func(w *lxd.Request) {
				w.Project, w.Profile, w.VMHost, w.Apart, w.DiskGB, w.Interfaces = "p", "maas", "h", true, 25, "eth0:name=br0"
			})},
		"When the machine and the MaasCluster set lxdConfig, the machine should win": {infrav1.MaasMachineSpec{LXDConfig: &infrav1.LXDMachineConfig{Project: "own", AntiAffinity: infrav1.AntiAffinityPreferred}},
			clusterOf(infrav1.LXDMachineConfig{Project: "p", AntiAffinity: infrav1.AntiAffinityRequired}), with(least, func(w *lxd.Request) { w.Project = "own" })},
		"When the spec restricts the hosts, the request should contain the restrictions": {infrav1.MaasMachineSpec{ResourcePool: ptr.To("gold"), Arch: "arm64", Tags: []string{"ssd"}, NotTags: []string{"slow"}}, nil,
			with(least, func(w *lxd.Request) {
				w.ResourcePool, w.Architecture, w.Tags, w.NotTags = "gold", "arm64", []string{"ssd"}, []string{"slow"}
			})},
		"When a size is below the minimum of MAAS, it should become the minimum": {infrav1.MaasMachineSpec{MinCPU: ptr.To(0), MinMemory: ptr.To(512), MinDiskSize: ptr.To(5)}, nil, least},
		"When a size is not a number, it should be ignored":                      {infrav1.MaasMachineSpec{LXDConfig: &infrav1.LXDMachineConfig{Storage: size("much")}}, nil, least},
		"When the machine sets the storage pool and the MaasCluster the size, both should be used": {
			infrav1.MaasMachineSpec{LXDConfig: &infrav1.LXDMachineConfig{Storage: &infrav1.LXDStorage{Pool: "own"}}},
			clusterOf(infrav1.LXDMachineConfig{Storage: &infrav1.LXDStorage{Size: size("25").Size, Pool: "theirs"}}), with(least, func(w *lxd.Request) { w.Store, w.DiskGB = "own", 25 })},
		"When the machine sets the size and the MaasCluster the storage pool, both should be used": {
			infrav1.MaasMachineSpec{LXDConfig: &infrav1.LXDMachineConfig{Storage: size("40")}},
			clusterOf(infrav1.LXDMachineConfig{Storage: &infrav1.LXDStorage{Size: size("25").Size, Pool: "theirs"}}), with(least, func(w *lxd.Request) { w.Store, w.DiskGB = "theirs", 40 })},
		"When lxd and lxdConfig both set a storage pool, lxdConfig should win": {
			infrav1.MaasMachineSpec{LXD: upstream(infrav1.VMConfig{StoragePool: "old"}), LXDConfig: &infrav1.LXDMachineConfig{Storage: &infrav1.LXDStorage{Pool: "new"}}}, nil, with(least, func(w *lxd.Request) { w.Store = "new" })},
		"When the machine sets a network, the MaasCluster's network should be ignored": {
			infrav1.MaasMachineSpec{LXDConfig: &infrav1.LXDMachineConfig{Network: &infrav1.LXDNetwork{Devices: []string{"br1", "", "br2"}}}},
			clusterOf(infrav1.LXDMachineConfig{Network: &infrav1.LXDNetwork{Bridge: "br0"}}), with(least, func(w *lxd.Request) { w.Interfaces = "eth0:name=br1;eth1:name=br2" })},
		"When the list of subnets has empty entries, they should be skipped": {
			infrav1.MaasMachineSpec{LXD: upstream(infrav1.VMConfig{Network: " , net-a,,net-b "})}, nil, with(least, func(w *lxd.Request) { w.Interfaces = "eth0:subnet=net-a;eth1:subnet=net-b" })},
		"When the MaasCluster has no lxdConfig, the defaults should apply": {infrav1.MaasMachineSpec{}, &infrav1.MaasCluster{}, least},
		"When the machine sets its host and anti-affinity, the MaasCluster should not override them": {
			infrav1.MaasMachineSpec{LXDConfig: &infrav1.LXDMachineConfig{VMHost: "own", Profile: "default", AntiAffinity: infrav1.AntiAffinityRequired}},
			clusterOf(infrav1.LXDMachineConfig{VMHost: "theirs", Profile: "maas", AntiAffinity: infrav1.AntiAffinityPreferred}),
			with(least, func(w *lxd.Request) { w.VMHost, w.Profile, w.Apart = "own", "default", true })},
		"When subnets, a bridge and devices are set, each should become an interface": {
			infrav1.MaasMachineSpec{LXD: upstream(infrav1.VMConfig{Network: "net-a, net-b"}), LXDConfig: &infrav1.LXDMachineConfig{Network: &infrav1.LXDNetwork{Bridge: "br0", Devices: []string{"br1"}}}}, nil,
			with(least, func(w *lxd.Request) { w.Interfaces = "eth0:name=br0,subnet=net-a;eth1:subnet=net-b;eth2:name=br1" })},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lxd.RequestOf(tc.spec, tc.cluster)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	host := lxd.Host{ZoneID: 3, PoolID: 2, Architectures: []string{"arm64/generic", "amd64/generic"}}
	got := lxd.ComposeRequest(with(small, func(w *lxd.Request) { w.Architecture, w.Interfaces = "amd64", "eth0:name=br0" }), lxd.Placement{Hostname: "vm-1", Store: "nvme"}, host)
	want := maas.ComposeRequest{Hostname: "vm-1", Cores: 2, MemoryMiB: 4096, Storage: "root:60(nvme)", Interfaces: "eth0:name=br0", Architecture: "amd64/generic", Zone: ptr.To(3), Pool: ptr.To(2)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHostname(t *testing.T) {
	const uid = "0f3c61f2-3f43-4f0b-8c55-1f0a5a6d9f10"
	for try, want := range []string{"vm-" + uid, "vm-" + uid + "-2", "vm-" + uid + "-3"} {
		name := lxd.Hostname(uid, "", try)
		if name != want || lxd.UIDOf(name) != uid || len(name) > 63 {
			t.Errorf("try %d has the name %s, of %q", try, name, lxd.UIDOf(name))
		}
	}
	for _, other := range []string{"", "vm-1", "node-" + uid, "vm-" + uid + "-x", "vm-" + uid + "0"} {
		if got := lxd.UIDOf(other); got != "" {
			t.Errorf("%s passes for a virtual machine of %s", other, got)
		}
	}
}

func TestPlacementOf(t *testing.T) {
	m := &infrav1.MaasMachine{}
	if got := lxd.PlacementOf(m); got != nil {
		t.Errorf("there is none, and it reads %+v", got)
	}
	want := peer("1", "a", "az1").Placement
	if err := lxd.SetPlacement(m, want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, lxd.PlacementOf(m)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	m.Annotations[lxd.PlacementAnnotation] = "{"
	if got := lxd.PlacementOf(m); got != nil {
		t.Errorf("it is broken, and reads %+v", got)
	}
}

func TestReasonIn(t *testing.T) {
	for words, want := range map[string]string{
		"Unable to compose KVM instance in 'h'. CPU overcommit ratio is 1.0 and there are 0 available resources; 2 requested.": lxd.ReasonInsufficientResources,
		"Unable to compose KVM instance in 'h'. Not enough storage space on storage pools":                                     lxd.ReasonInsufficientResources,
		"Storage pool \"nvme\" not found":        lxd.ReasonStoragePoolNotFound,
		"Profile not found":                      lxd.ReasonProfileNotFound,
		"Project \"x\" not found":                lxd.ReasonProjectNotFound,
		"Failed talking to pod: connection lost": "",
	} {
		if got := lxd.ReasonIn(words); got != want {
			t.Errorf("%q is %q, and not %q", words, got, want)
		}
	}
}

// TestHostnameOfCluster checks that the sweep of a cluster matches only the virtual machines that were composed for
// this cluster.
func TestHostnameOfCluster(t *testing.T) {
	const uid, ours, theirs = "0f3c61f2-3f43-4f0b-8c55-1f0a5a6d9f10", "3b0c1a52-0000-4f0b-8c55-1f0a5a6d9f10", "3b0c1a52-0001-4f0b-8c55-1f0a5a6d9f10"
	for _, try := range []int{0, 1, 998} {
		name := lxd.Hostname(uid, ours, try)
		if lxd.UIDOf(name) != uid || len(name) > 63 {
			t.Errorf("try %d has the name %s, of %q", try, name, lxd.UIDOf(name))
		}
		if !lxd.MadeFor(name, ours) || lxd.MadeFor(name, theirs) || lxd.MadeFor(name, "") {
			t.Errorf("%s is said to be made for us: %t, for others: %t, for nobody: %t", name, lxd.MadeFor(name, ours), lxd.MadeFor(name, theirs), lxd.MadeFor(name, ""))
		}
		if again := lxd.Hostname(uid, ours, try); again != name {
			t.Errorf("after a restart %s is %s", name, again)
		}
	}
	if lxd.Hostname(uid, ours, 0) == lxd.Hostname(uid, theirs, 0) || lxd.Hostname(uid, ours, 0) == lxd.Hostname(uid, ours, 1) {
		t.Error("two clusters, or two tries, share a name")
	}
	for _, name := range []string{lxd.Hostname(uid, "", 0), lxd.Hostname(uid, "", 4), "metal", ""} {
		if lxd.MadeFor(name, ours) || lxd.MadeFor(name, "") {
			t.Errorf("%q, which bears no mark, passes for that of a cluster", name)
		}
	}
}

// TestBrokenPlacement checks that an incomplete placement counts as none. Otherwise it would reserve resources on no
// host, or be taken for a machine without a name.
func TestBrokenPlacement(t *testing.T) {
	for name, text := range map[string]string{
		"has no host name":                   `{"host": "a", "cores": 2}`,
		"breaks after the host name":         `{"hostname": "vm-1", "cores": "two"}`,
		"is of another kind":                 `["vm-1"]`,
		"is empty":                           ``,
		"is null":                            `null`,
		"has a time that is none":            `{"hostname": "vm-1", "at": "noon"}`,
		"has more than one value one by one": `{"hostname": "vm-1"} {"hostname": "vm-2"}`,
	} {
		m := &infrav1.MaasMachine{}
		m.Annotations = map[string]string{lxd.PlacementAnnotation: text}
		if got := lxd.PlacementOf(m); got != nil {
			t.Errorf("one that %s reads as %+v", name, got)
		}
	}
}

// TestSetPlacementKeepsOthers checks that SetPlacement keeps the annotations of other owners.
func TestSetPlacementKeepsOthers(t *testing.T) {
	m := &infrav1.MaasMachine{}
	m.Annotations = map[string]string{"theirs": "x"}
	for _, host := range []string{"a", "b"} {
		if err := lxd.SetPlacement(m, peer("1", host, "az1", unreported).Placement); err != nil {
			t.Fatal(err)
		}
	}
	if got := lxd.PlacementOf(m); got == nil || got.Host != "b" || !got.Composed.IsZero() || m.Annotations["theirs"] != "x" || len(m.Annotations) != 2 {
		t.Errorf("it reads %+v of %v", got, m.Annotations)
	}
}
