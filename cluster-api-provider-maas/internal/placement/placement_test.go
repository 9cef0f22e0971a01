// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/maas"
)

func of(id string, change func(*maas.Machine)) maas.Machine {
	m := maas.Machine{SystemID: id, CPUCount: 4, MemoryMiB: 8192, Architecture: "amd64/generic", Zone: maas.Zone{Name: "az1"}, Pool: maas.Pool{Name: "p"},
		TagNames: []string{"ssd"}, PhysicalBlockDevices: []maas.BlockDevice{{Size: 80_000_000_000}, {Size: 900_000_000_000}}}
	if change != nil {
		change(&m)
	}
	return m
}

func nobody(string) bool { return false }

func TestMismatches(t *testing.T) {
	for name, tc := range map[string]struct {
		request placement.Request
		want    []string
	}{
		"When nothing is requested, every machine should fit": {placement.Request{}, nil},
		"When the machine has everything, it should fit": {placement.Request{MinCPU: 4, MinMemoryMiB: 8192, MinDiskGB: 80, Zones: []string{"az1"}, Pool: "p",
			Architecture: "amd64", Tags: []string{"ssd"}, NotTags: []string{"gpu"}}, nil},
		"When the full architecture is requested, it should fit":                    {placement.Request{Architecture: "amd64/generic"}, nil},
		"When only a part of the architecture name is requested, it should not fit": {placement.Request{Architecture: "amd"}, []string{"is of architecture amd64/generic"}},
		"When the machine lacks everything, it should list each mismatch": {placement.Request{MinCPU: 5, MinMemoryMiB: 9000, MinDiskGB: 81, Zones: []string{"az2"}, Pool: "q",
			Tags: []string{"gpu"}, NotTags: []string{"ssd"}}, []string{`is in zone "az1" instead of "az2"`, `is in resource pool "p" instead of "q"`,
			"has 4 instead of 5 cores", "has 8192 instead of 9000 MiB of memory", "has 80 instead of 81 GB of disk", `lacks tag "gpu"`, `has the unwanted tag "ssd"`}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tc.request.Mismatches(of("x", nil))).To(Equal(tc.want))
		})
	}
}

func TestLeast(t *testing.T) {
	t.Run("When the minimum of everything is requested, a machine without resources should not fit", func(t *testing.T) {
		got := placement.Request{MinCPU: 1, MinMemoryMiB: 1, MinDiskGB: 1}.Mismatches(maas.Machine{})
		NewWithT(t).Expect(got).To(Equal([]string{"has 0 instead of 1 cores", "has 0 instead of 1 MiB of memory", "has 0 instead of 1 GB of disk"}))
	})
}

// onSubnet gives a machine an enabled interface on a subnet.
func onSubnet(id int) func(*maas.Machine) {
	return func(m *maas.Machine) {
		m.Interfaces = []maas.Interface{{ID: 1, Enabled: true, Links: []maas.Link{{Subnet: &maas.Subnet{ID: id}}}}}
	}
}

// vm makes a machine a virtual machine of an LXD host.
func vm(hostname string) func(*maas.Machine) {
	return func(m *maas.Machine) { m.PowerType, m.Hostname = "lxd", hostname }
}

// TestWhoElseMayHaveIt covers requirements that are not in the MaasMachine spec.
func TestWhoElseMayHaveIt(t *testing.T) {
	composed := lxd.Hostname("0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f", "cluster", 0)
	subnet := &maas.Subnet{ID: 7, CIDR: "10.0.7.0/24"}
	for name, tc := range map[string]struct {
		request placement.Request
		change  func(*maas.Machine)
		lacks   []string
		none    string
		some    string
	}{
		"When a static address is requested, a machine without an interface on the subnet should not fit": {
			placement.Request{Subnet: subnet}, nil, []string{"has no interface on subnet 10.0.7.0/24"},
			"none of 2 Ready machines has an interface on subnet 10.0.7.0/24", "2 of 3 Ready machines have an interface on subnet 10.0.7.0/24"},
		"When a static address is requested, a machine on another subnet should not fit": {
			placement.Request{Subnet: subnet}, onSubnet(8), []string{"has no interface on subnet 10.0.7.0/24"}, "", ""},
		"When a static address is requested, a machine on its subnet should fit": {placement.Request{Subnet: subnet}, onSubnet(7), nil, "", ""},
		"When a virtual machine was composed for another MaasMachine, it should not fit": {
			placement.Request{}, vm(composed), []string{"was composed for another MaasMachine"},
			"none of 2 Ready machines is not a virtual machine of another MaasMachine",
			"2 of 3 Ready machines are not virtual machines of other MaasMachines"},
		"When composed virtual machines are allowed, one should fit":              {placement.Request{Composed: true}, vm(composed), nil, "", ""},
		"When a virtual machine was composed manually, it should fit":             {placement.Request{}, vm("vm-of-alice"), nil, "", ""},
		"When a bare-metal machine has the name of a composed one, it should fit": {placement.Request{}, func(m *maas.Machine) { m.Hostname = composed }, nil, "", ""},
		"When a machine has the quarantine tag, it should not fit any request": {
			placement.Request{}, func(m *maas.Machine) { m.TagNames = []string{quarantine.Tag} },
			[]string{fmt.Sprintf("has the unwanted tag %q", quarantine.Tag)},
			fmt.Sprintf("none of 2 Ready machines is without tag %q", quarantine.Tag), fmt.Sprintf("2 of 3 Ready machines are without tag %q", quarantine.Tag)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := of("x", tc.change)
			g.Expect(tc.request.Mismatches(m)).To(Equal(tc.lacks))
			g.Expect(tc.request.Candidates([]maas.Machine{m}, nobody)).To(HaveLen(map[bool]int{true: 1}[tc.lacks == nil]))
			if tc.none == "" {
				return
			}
			g.Expect(tc.request.Explain([]maas.Machine{m, m}, nobody)).To(Equal(tc.none))
			fits := of("y", onSubnet(subnet.ID))
			g.Expect(tc.request.Explain([]maas.Machine{m, fits, fits}, nobody)).To(Equal(tc.some))
		})
	}
}

// TestOf checks that the request contains each requirement in the spec of a MaasMachine.
func TestOf(t *testing.T) {
	g := NewWithT(t)
	g.Expect(placement.Of(infrav1.MaasMachineSpec{})).To(Equal(placement.Request{}))
	g.Expect(placement.Of(infrav1.MaasMachineSpec{
		MinCPU: ptr.To(1), MinMemory: ptr.To(2), MinDiskSize: ptr.To(3), ResourcePool: ptr.To("p"), Arch: "amd64", Tags: []string{"a"}, NotTags: []string{"b"},
	})).To(Equal(placement.Request{MinCPU: 1, MinMemoryMiB: 2, MinDiskGB: 3, Pool: "p", Architecture: "amd64", Tags: []string{"a"}, NotTags: []string{"b"}}))
}

func TestCandidates(t *testing.T) {
	g := NewWithT(t)
	ready := []maas.Machine{
		of("big", func(m *maas.Machine) { m.CPUCount = 64 }), of("small", nil),
		of("locked", func(m *maas.Machine) { m.Locked = true }), of("bad", nil), of("far", func(m *maas.Machine) { m.Zone.Name = "az2" }),
	}
	request := placement.Request{Zones: []string{"az1"}}
	var ids []string
	for _, m := range request.Candidates(ready, func(id string) bool { return id == "bad" }) {
		ids = append(ids, m.SystemID)
	}
	g.Expect(ids).To(Equal([]string{"small", "big"}), "cheapest first, as MAAS picks")
	ids = nil
	for _, m := range (placement.Request{Zones: []string{"az2", "az1"}}).Candidates(ready, nobody) {
		ids = append(ids, m.SystemID)
	}
	g.Expect(ids).To(Equal([]string{"far", "small", "bad", "big"}), "the most wanted zone first")
	costs := []maas.Machine{
		of("cores", func(m *maas.Machine) { m.CPUCount = 16 }), of("both", func(m *maas.Machine) { m.CPUCount, m.MemoryMiB = 8, 16*1024 }),
		of("memory", func(m *maas.Machine) { m.MemoryMiB = 24 * 1024 }), of("least", func(m *maas.Machine) { m.CPUCount = 8 }),
	}
	ids = nil
	for _, m := range (placement.Request{}).Candidates(costs, nobody) {
		ids = append(ids, m.SystemID)
	}
	g.Expect(ids).To(Equal([]string{"least", "cores", "both", "memory"}), "a core costs as much as a GiB; of two that cost the same MAAS's first")
}

func TestExplain(t *testing.T) {
	two := []maas.Machine{of("a", nil), of("b", func(m *maas.Machine) { m.Zone.Name = "az2" })}
	for name, tc := range map[string]struct {
		request  placement.Request
		ready    []maas.Machine
		setAside func(string) bool
		want     string
	}{
		"When no machine is Ready, it should report that":                          {placement.Request{}, nil, nobody, "MAAS has no Ready machine that the user of the API key may see"},
		"When one constraint excludes all machines, it should name the constraint": {placement.Request{MinCPU: 16}, two, nobody, "none of 2 Ready machines has 16 cores"},
		"When the only machine is excluded, the count should be 1":                 {placement.Request{MinCPU: 16}, two[:1], nobody, "none of 1 Ready machine has 16 cores"},
		"When constraints add up, it should report each step": {placement.Request{Zones: []string{"az1"}, Tags: []string{"gpu"}}, two, nobody,
			`1 of 2 Ready machines is in zone "az1"; none of these has tag "gpu"`},
		"When several machines remain, it should use the plural": {placement.Request{MinCPU: 4, Zones: []string{"az1", "az2"}, Tags: []string{"gpu"}},
			append(two, of("c", func(m *maas.Machine) { m.CPUCount = 2 })), nobody, `2 of 3 Ready machines have 4 cores; none of these has tag "gpu"`},
		"When several machines have a tag, it should use the plural": {placement.Request{Tags: []string{"ssd", "gpu"}},
			append(two, of("c", func(m *maas.Machine) { m.TagNames = nil })), nobody, `2 of 3 Ready machines have tag "ssd"; none of these has tag "gpu"`},
		"When no machine has the architecture, it should name the architecture": {placement.Request{Architecture: "arm64"}, two, nobody, "none of 2 Ready machines is of architecture arm64"},
		"When some machines have the architecture, it should count them": {placement.Request{Architecture: "amd64", Tags: []string{"gpu"}},
			append(two, of("c", func(m *maas.Machine) { m.Architecture = "arm64/generic" })), nobody, `2 of 3 Ready machines are of architecture amd64; none of these has tag "gpu"`},
		"When several machines are in the zones, it should name all zones": {placement.Request{Zones: []string{"az2", "az1"}, Tags: []string{"gpu"}},
			append(two, of("c", func(m *maas.Machine) { m.Zone.Name = "az3" })), nobody, `2 of 3 Ready machines are in zone "az1" or "az2"; none of these has tag "gpu"`},
		"When MAAS knows no disk of a machine, it should not fit any disk size": {placement.Request{MinDiskGB: 1},
			[]maas.Machine{of("a", func(m *maas.Machine) { m.PhysicalBlockDevices = nil })}, nobody, "none of 1 Ready machine has 1 GB of disk"},
		"When all machines that fit are set aside, it should report that": {placement.Request{Zones: []string{"az1"}}, two, func(string) bool { return true },
			`1 of 2 Ready machines is in zone "az1"; all 1 that fit are set aside for a while, since a deployment failed on them or another MaasMachine of the namespace still names them or has its static address there`},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tc.request.Explain(tc.ready, tc.setAside)).To(Equal(tc.want))
		})
	}
}

// TestExplainNeverContradictsCandidates checks that for any request, there is an explanation if and only if there is
// no candidate.
func TestExplainNeverContradictsCandidates(t *testing.T) {
	var ready []maas.Machine
	for i := range 20 {
		ready = append(ready, of(fmt.Sprint(i), func(m *maas.Machine) {
			m.CPUCount, m.Zone.Name = i, fmt.Sprintf("az%d", i%3)
			if i%4 == 0 {
				m.TagNames = nil
			}
		}))
	}
	for cpu := range 22 {
		for zone := range 4 {
			for _, tags := range [][]string{nil, {"ssd"}, {"none"}} {
				request := placement.Request{MinCPU: cpu, Zones: []string{fmt.Sprintf("az%d", zone)}, Tags: tags}
				some := len(request.Candidates(ready, nobody)) > 0
				text := request.Explain(ready, nobody)
				if !some {
					NewWithT(t).Expect(text).To(ContainSubstring("none of"), "%v", request)
				}
			}
		}
	}
}

func TestWhatMAASIsAskedFor(t *testing.T) {
	all := placement.Request{MinCPU: 8, MinMemoryMiB: 16384, MinDiskGB: 100, Zones: []string{"az2", "az1"}, Pool: "p", Architecture: "arm64",
		Tags: []string{"a", "b"}, NotTags: []string{"c"}}
	g := NewWithT(t)
	g.Expect(all.Allocation("az1")).To(Equal(maas.AllocateRequest{CPUCount: 8, MemoryMiB: 16384, Storage: "root:100", Zone: "az1", Pool: "p",
		Architecture: "arm64", Tags: []string{"a", "b"}, NotTags: []string{"c"}}))
	g.Expect(all.Filter()).To(Equal(maas.MachineFilter{CPUCount: 8, MemoryMiB: 16384, Zones: []string{"az1", "az2"}, Pools: []string{"p"},
		Architectures: []string{"arm64"}, Tags: []string{"a", "b"}}), "the order in which zones are wanted makes no other list")
	g.Expect(placement.Request{}.Allocation("")).To(Equal(maas.AllocateRequest{}))
	g.Expect(placement.Request{}.Filter()).To(Equal(maas.MachineFilter{}))
}

// TestNoDiskAskedFor checks that MAAS compares the root disk only if a size is requested.
func TestNoDiskAskedFor(t *testing.T) {
	g := NewWithT(t)
	g.Expect(placement.Request{}.Allocation("").Storage).To(BeEmpty())
	g.Expect(placement.Request{MinDiskGB: 1}.Allocation("").Storage).To(Equal("root:1"))
	g.Expect(placement.DiskBytes(maas.Machine{})).To(BeZero())
}
