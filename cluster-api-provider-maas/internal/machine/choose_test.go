// SPDX-License-Identifier: Apache-2.0

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
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When MAAS may select the machine, it should not read any other machine":                               picksUnlisted,
		"When no machine fits, it should request a machine in each zone once and write nothing while it waits": waitsQuietly,
		"When MAAS could compose a machine, it should not request a machine that does not exist":               composesNothing,
		"When a sibling's machine was just released in MAAS, it should not allocate that machine":              leavesSiblings,
		"When MAAS has no zone, pool or tag with the name, it should list the existing ones":                   unknownNames,
		"When a zone has no machine, it should allocate a machine in the next zone":                            nextZone,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// printed returns the number of machines that MAAS listed since the last call.
func (w *world) printed() int {
	defer w.ResetRequests()
	return w.Load.Report().Of("machines.read").Machines
}

func (w *world) asked() int { return w.Load.Report().Of("machines.allocate").Calls }

func picksUnlisted(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.printed()
	w.addPlain("m")
	w.pass("m")
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaa1")), "the cheapest")
	w.Expect(w.asked()).To(Equal(1))
	w.Expect(w.printed()).To(BeZero())
}

func waitsQuietly(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.add("m", infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(65), MinMemory: ptr.To(1)})
	w.pass("m")
	w.expect("m", "Ready False NoCapacity", "none of 5 Ready machines has 65 cores")
	w.Expect(w.machine("m").Annotations).NotTo(HaveKey(machine.AttemptAnnotation))
	w.Expect(w.asked()).To(Equal(3), "in each zone")
	before := w.machine("m").ResourceVersion
	for range 10 {
		w.pass("m")
	}
	w.Expect(w.asked()).To(Equal(3))
	w.Expect(w.machine("m").ResourceVersion).To(Equal(before))
	w.Change("aaaaa3", func(m *inventory.Machine) { m.CPUCount = 65 })
	w.pass("m")
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaa3")))
}

func composesNothing(t *testing.T, cfg *rest.Config) {
	w := newWorldOf(t, cfg, "alice", simtest.WithVMHost)
	w.add("m", infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(2), MinMemory: ptr.To(2048), Tags: []string{"virtual"}})
	w.pass("m")
	w.expect("m", "Ready False NoCapacity", "")
	w.Expect(w.asked()).To(BeZero())
	w.Expect(w.Machines()).To(HaveLen(5))
}

func leavesSiblings(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.addPlain("first")
	w.until("Ready True Ready", "first")
	w.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Ready, "", "" })
	w.addPlain("second")
	w.until("Ready True Ready", "second")
	w.Expect(w.machine("second").Spec.SystemID).NotTo(HaveValue(Equal("aaaaa1")))
	w.Expect(w.Machine("aaaaa1").Owner).To(BeEmpty(), "it was given back")
}

func unknownNames(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.add("m", infrav1.MaasMachineSpec{Image: "custom/node", FailureDomain: ptr.To("nozone"), ResourcePool: ptr.To("nopool"), Tags: []string{"notag"}})
	for range 2 {
		w.pass("m")
		w.expect("m", "Ready False NoCapacity", `MAAS has no zone "nozone", it has: default, north, south; `+
			`MAAS has no resource pool "nopool", it has: blue, default; MAAS has no tag "notag", it has: fast, gpu`)
	}
}

func nextZone(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.allow("nowhere", "south", "north")
	w.add("m", infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(8), MinMemory: ptr.To(1024), ResourcePool: ptr.To("blue")})
	w.printed()
	w.pass("m")
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaa3")))
	w.Expect(w.printed()).To(BeZero())
}
