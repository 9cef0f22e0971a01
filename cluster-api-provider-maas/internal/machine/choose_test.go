package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func TestChoose(t *testing.T) {
	cfg := testenv.Start(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When MAAS may pick, it should print no machine but the one":                              picksUnlisted,
		"When no machine fits, it should ask in each zone once, and write nothing while it waits": waitsQuietly,
		"When MAAS could compose a machine, it should not be asked for one that does not exist":   composesNothing,
		"When a sibling's machine was taken away a moment ago, it should be left alone":           leavesSiblings,
		"When MAAS has no zone, pool or tag of the name, it should name those that there are":     unknownNames,
		"When MAAS is asked for a zone that is empty, it should give a machine of the next zone":  nextZone,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// printed is how many machines MAAS printed since the last call, in lists.
func (k *rack) printed() int {
	defer k.ResetRequests()
	return k.Load.Report().Of("machines.read").Machines
}

func (k *rack) asked() int { return k.Load.Report().Of("machines.allocate").Calls }

func picksUnlisted(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.printed()
	k.addPlain("m")
	k.pass("m")
	k.Expect(k.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaa1")), "the cheapest")
	k.Expect(k.asked()).To(Equal(1))
	k.Expect(k.printed()).To(BeZero())
}

func waitsQuietly(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.add("m", infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(65), MinMemory: ptr.To(1)})
	k.pass("m")
	k.expect("m", "Ready False NoCapacity", "none of 5 Ready machines has 65 cores")
	k.Expect(k.machine("m").Annotations).NotTo(HaveKey(machine.AttemptAnnotation))
	k.Expect(k.asked()).To(Equal(3), "in each zone")
	before := k.machine("m").ResourceVersion
	for range 10 {
		k.pass("m")
	}
	k.Expect(k.asked()).To(Equal(3))
	k.Expect(k.machine("m").ResourceVersion).To(Equal(before))
	k.Change("aaaaa3", func(m *inventory.Machine) { m.CPUCount = 65 })
	k.pass("m")
	k.Expect(k.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaa3")))
}

func composesNothing(t *testing.T, cfg *rest.Config) {
	k := newRackOf(t, cfg, "alice", simtest.WithVMHost)
	k.add("m", infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(2), MinMemory: ptr.To(2048), Tags: []string{"virtual"}})
	k.pass("m")
	k.expect("m", "Ready False NoCapacity", "")
	k.Expect(k.asked()).To(BeZero())
	k.Expect(k.Machines()).To(HaveLen(5))
}

func leavesSiblings(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.addPlain("first")
	k.until("Ready True Ready", "first")
	k.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Ready, "", "" })
	k.addPlain("second")
	k.until("Ready True Ready", "second")
	k.Expect(k.machine("second").Spec.SystemID).NotTo(HaveValue(Equal("aaaaa1")))
	k.Expect(k.Machine("aaaaa1").Owner).To(BeEmpty(), "it was given back")
}

func unknownNames(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.add("m", infrav1.MaasMachineSpec{Image: "custom/node", FailureDomain: ptr.To("nozone"), ResourcePool: ptr.To("nopool"), Tags: []string{"notag"}})
	for range 2 {
		k.pass("m")
		k.expect("m", "Ready False NoCapacity", `MAAS has no zone "nozone", it has: default, north, south; `+
			`MAAS has no resource pool "nopool", it has: blue, default; MAAS has no tag "notag", it has: fast, gpu`)
	}
}

func nextZone(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.allow("nowhere", "south", "north")
	k.add("m", infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(8), MinMemory: ptr.To(1024), ResourcePool: ptr.To("blue")})
	k.printed()
	k.pass("m")
	k.Expect(k.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaa3")))
	k.Expect(k.printed()).To(BeZero())
}
