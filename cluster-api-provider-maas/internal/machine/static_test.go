// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func TestStaticIP(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When an address is set, the machine should get it and release it":                               staticLife,
		"When the subnet is on another interface, that interface should get the address":                 otherInterface,
		"When only the VLAN shows where the subnet is, the interface on it should get the address":       byVLAN,
		"When machines share a range, each should get its own address and keep it":                       sharedRange,
		"When many addresses are chosen at once and the cache is stale, no two should be the same":       crowd,
		"When a range is exhausted, it should report the users of its addresses and allocate no machine": usedUp,
		"When the request is invalid in MAAS, it should report that and allocate no machine":             refusals,
		"When another user assigns an address of the range first, it should use the next one":            faster,
		"When another user assigns the only address first, it should keep its machine and wait":          fasterWithTheOne,
		"When the answer to the link call is lost, it should find the address on its machine":            answerLost,
		"When calls of a dead process arrive late, it should keep their result":                          arrivesLate,
		"When the API key may not change links, it should report the required permission":                noAdministrator,
		"When a deployment fails, the address should move to the next machine":                           moves,
		"When the process dies between any two calls, the next process should finish":                    dies,
		"When a machine was deployed before, it should report that the address has no effect":            tooLate,
		"When another user gets the machine before its address is unassigned, an event should report it": keptByAnother,
		"When a machine still has the address of another MaasMachine, it should not be allocated":        notYetFree,
		"When an allocated machine has no interface on the subnet, another machine should be tried":      noInterface,
		"When a machine has an unrecorded address that the spec allows, it should keep the address":      keepsOwn,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

func staticLife(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.addStatic("m", infrav1.StaticIPConfig{IP: "10.9.0.5", CIDR: "10.9.0.0/24", Gateway: "10.9.0.1", Nameservers: []string{"10.9.0.2"}})
	w.until("Ready True Ready", "m")
	w.expect("m", "StaticIPAssigned True StaticIPAssigned", "10.9.0.5 on eth0")
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaa1")))
	w.Expect(w.modes("aaaaa1", 0)).To(Equal([]string{"static 10.9.0.5"}))
	w.Expect(w.Machine("aaaaa1").Interfaces[0].Links[0].Gateway).To(BeTrue())
	w.Expect(w.machine("m").Status.Addresses).To(ContainElement(infrav1.MachineAddress{Type: "InternalIP", Address: "10.9.0.5"}))
	w.Expect(w.wrote()).To(Equal([]string{"allocate", "set_workload_annotations", "link_subnet", "unlink_subnet", "deploy"}))
	settled := w.machine("m").ResourceVersion
	w.passes("m", 3)
	w.Expect(w.machine("m").ResourceVersion).To(Equal(settled), "a settled machine is not written")
	w.Expect(w.wrote()).To(BeEmpty())

	w.leave("m")
	w.Expect(w.wrote()).To(Equal([]string{"release", "link_subnet", "unlink_subnet"}))
	w.Expect(w.modes("aaaaa1", 0)).To(Equal([]string{"auto"}), "the next user gets the machine as it was")
	w.Expect(w.Machine("aaaaa1").Status).To(Equal(status.Ready))
}

func otherInterface(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.addStatic("m", infrav1.StaticIPConfig{IP: "10.8.0.7"})
	w.until("Ready True Ready", "m")
	w.expect("m", "StaticIPAssigned True StaticIPAssigned", "10.8.0.7 on eth1")
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaa3")), "the only machine on that subnet")
	w.Expect(w.modes("aaaaa3", 0)).To(ConsistOf(HavePrefix("auto 10.9.0.")), "other interfaces are left alone")
	w.Expect(w.modes("aaaaa3", 1)).To(Equal([]string{"static 10.8.0.7"}))
	w.addStatic("two", infrav1.StaticIPConfig{IP: "10.8.0.8"})
	w.until("Ready False NoCapacity", "two")
	w.expect("two", "Ready False NoCapacity", "none of 4 Ready machines has an interface on subnet 10.8.0.0/28")
	w.leave("m", "two")
}

func byVLAN(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.Change("aaaaa3", func(m *inventory.Machine) { m.Interfaces[1].Links = []inventory.Link{{ID: 901, Mode: "link_up"}} })
	w.addStatic("m", infrav1.StaticIPConfig{IP: "10.8.0.7", CIDR: "10.8.0.0/28"})
	w.until("Ready True Ready", "m")
	w.Expect(w.modes("aaaaa3", 1)).To(Equal([]string{"static 10.8.0.7"}))
	w.leave("m")
	w.Expect(w.modes("aaaaa3", 1)).To(BeEmpty(), "there was no link that chose addresses")
}

func sharedRange(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.hold("10.9.0.11")
	names := []string{"a", "b", "c"}
	for _, name := range names {
		w.addStatic(name, infrav1.StaticIPConfig{CIDR: "10.9.0.0/24", Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.13"}})
	}
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() { w.reconcile(name, 0) })
	}
	all.Wait()
	w.restart()
	w.until("Ready True Ready", names...)
	w.Expect(w.addresses(names...)).To(ConsistOf("10.9.0.10", "10.9.0.12", "10.9.0.13"))
	before := w.addresses(names...)
	w.restart()
	w.passes("a", 3)
	w.Expect(w.addresses(names...)).To(Equal(before))
	w.leave("b")
	w.addStatic("d", infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.13"}})
	w.until("Ready True Ready", "d")
	w.Expect(w.addresses("d")).To(Equal(before[1:2]), "the one that is free again")
}

// addresses returns the address that MAAS has for the machine of each named MaasMachine.
func (w *world) addresses(names ...string) []string {
	w.t.Helper()
	var all []string
	for _, name := range names {
		ips := w.Machine(*w.machine(name).Spec.SystemID).IPs()
		w.Expect(ips).To(HaveLen(1), name)
		all = append(all, ips[0])
	}
	return all
}

func usedUp(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.hold("10.9.0.11")
	pool := infrav1.StaticIPConfig{CIDR: "10.9.0.0/24", Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.11"}}
	w.addStatic("a", pool)
	w.until("Ready True Ready", "a")
	w.addStatic("b", pool)
	w.wrote()
	w.until("Ready False StaticIPRangeExhausted", "b")
	w.expect("b", "Ready False StaticIPRangeExhausted", "no address of staticIP.range 10.9.0.10 to 10.9.0.11 is free (10.9.0.10 is held by MaasMachine a "+
		"of this cluster, 10.9.0.11 is held by node five (aaaaa5) in MAAS)")
	w.expect("b", "StaticIPAssigned False StaticIPRangeExhausted", "maxSurge")
	w.Expect(w.wrote()).To(BeEmpty(), "no machine is taken")
	w.leave("a")
	w.until("Ready True Ready", "b")
}

func refusals(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.hold("10.9.0.60")
	for name, want := range map[string]struct {
		static          infrav1.StaticIPConfig
		reason, message string
	}{
		"subnet":   {infrav1.StaticIPConfig{IP: "10.7.0.5", CIDR: "10.7.0.0/24"}, "SubnetNotFound", "MAAS has no subnet 10.7.0.0/24, it has: 10.8.0.0/28, 10.9.0.0/24"},
		"no-cidr":  {infrav1.StaticIPConfig{IP: "192.0.2.9"}, "SubnetNotFound", `MAAS has no subnet for "192.0.2.9"`},
		"outside":  {infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.9.0.250", End: "10.9.1.2"}}, "StaticIPInvalid", "lies outside of subnet 10.9.0.0/24"},
		"gateway":  {infrav1.StaticIPConfig{IP: "10.9.0.5", Gateway: "10.9.0.254"}, "StaticIPGatewayMismatch", "that of 10.9.0.0/24 is 10.9.0.1: set the subnet's in MAAS"},
		"no-gate":  {infrav1.StaticIPConfig{IP: "10.8.0.5", Gateway: "10.8.0.1"}, "StaticIPGatewayMismatch", "that of 10.8.0.0/28 is none"},
		"servers":  {infrav1.StaticIPConfig{IP: "10.9.0.5", Nameservers: []string{"9.9.9.9"}}, "StaticIPNameserversMismatch", "those of 10.9.0.0/24 are 10.9.0.2"},
		"in-use":   {infrav1.StaticIPConfig{IP: "10.9.0.60"}, "StaticIPInUse", "10.9.0.60 is held by node five (aaaaa5) in MAAS: free it"},
		"dynamic":  {infrav1.StaticIPConfig{IP: "10.9.0.220"}, "StaticIPInUse", "held by the dynamic range 10.9.0.200 to 10.9.0.250 of the subnet"},
		"a-router": {infrav1.StaticIPConfig{IP: "10.9.0.1"}, "StaticIPInUse", "held by the subnet's gateway"},
	} {
		w.addStatic(name, want.static)
		w.reconcile(name, 0)
		w.expect(name, "Ready False "+want.reason, want.message)
		w.expect(name, "StaticIPAssigned False "+want.reason, want.message)
	}
	w.Expect(w.wrote()).To(BeEmpty(), "no machine is taken for an address that it can't have")
	w.addStatic("reserved", infrav1.StaticIPConfig{IP: "10.9.0.7"})
	w.until("Ready True Ready", "reserved")
}

func faster(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.addStatic("m", infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.13"}})
	w.once("link_subnet", func() { w.hold("10.9.0.10") })
	w.reconcile("m", 0)
	w.expect("m", "Ready False StaticIPInUse", "IP address is already in use. (HTTP 404); another address of the range is picked")
	w.until("Ready True Ready", "m")
	w.Expect(w.addresses("m")).To(Equal([]string{"10.9.0.11"}))
	w.Expect(slices.DeleteFunc(w.wrote(), func(op string) bool { return op != "allocate" })).To(HaveLen(1), "the machine is kept")
}

func fasterWithTheOne(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.addStatic("m", infrav1.StaticIPConfig{IP: "10.9.0.10"})
	w.once("link_subnet", func() { w.hold("10.9.0.10") })
	w.reconcile("m", 0)
	w.expect("m", "Ready False StaticIPInUse", "IP address is already in use. (HTTP 404); free 10.9.0.10 in MAAS")
	w.Expect(w.modes("aaaaa1", 0)).To(Equal([]string{"auto"}), "a refusal leaves the machine as it was")
	w.hold("10.9.0.99")
	w.until("Ready True Ready", "m")
	w.Expect(w.addresses("m")).To(Equal([]string{"10.9.0.10"}))
}

func answerLost(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.addStatic("m", infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.13"}})
	var first sync.Once
	w.after = func(op string) (err error) {
		if op == "link_subnet" {
			first.Do(func() { err = errCut })
		}
		return err
	}
	w.until("Ready True Ready", "m")
	w.Expect(w.addresses("m")).To(Equal([]string{"10.9.0.10"}))
	w.Expect(slices.DeleteFunc(w.wrote(), func(op string) bool { return op != "link_subnet" })).To(HaveLen(1))
}

func arrivesLate(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.addStatic("m", infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.13"}})
	w.once("link_subnet", func() {
		w.Change("aaaaa1", func(m *inventory.Machine) {
			m.Interfaces[0].Links = []inventory.Link{{ID: 902, Mode: "static", SubnetID: ptr.To(1), IP: "10.9.0.10"}}
		})
	})
	w.until("Ready True Ready", "m")
	w.Expect(w.addresses("m")).To(Equal([]string{"10.9.0.10"}))
	w.leave("m")
	w.Expect(w.modes("aaaaa1", 0)).To(Equal([]string{"auto"}), "what was there before is still known")
}

func noAdministrator(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.addStatic("m", infrav1.StaticIPConfig{IP: "10.9.0.10"})
	w.reconcile("m", 0)
	w.expect("m", "Ready False MAASForbidden", "staticIP needs the API key of a MAAS administrator")
	w.leave("m")
	w.Expect(w.Machine("aaaaa1").Status).To(Equal(status.Ready))
	w.Expect(w.modes("aaaaa1", 0)).To(Equal([]string{"auto"}))
}

func moves(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	_, err := w.Faults.Add(faults.Rule{Kind: faults.DeployFails, Machine: "one"})
	w.Expect(err).NotTo(HaveOccurred())
	w.addStatic("m", infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.13"}})
	w.until("Ready True Ready", "m")
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaa2")))
	w.Expect(w.addresses("m")).To(Equal([]string{"10.9.0.10"}), "it is kept")
	w.Expect(w.modes("aaaaa1", 0)).To(Equal([]string{"auto"}))
	w.Expect(w.machine("m").Annotations[machine.AddressAnnotation]).To(MatchJSON(`{"ip": "10.9.0.10", "systemID": "aaaaa2", "replaced": "auto"}`))
}

func tooLate(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner, m.PowerState = status.Deployed, "admin", "on" })
	w.add("m", infrav1.MaasMachineSpec{Image: "custom/node", SystemID: ptr.To("aaaaa1"), ProviderID: ptr.To("maas:///default/aaaaa1"),
		StaticIP: &infrav1.StaticIPConfig{IP: "10.9.0.10"}})
	w.until("Ready True Ready", "m")
	w.expect("m", "StaticIPAssigned False MachineDeployedBefore", "no effect until the machine is replaced")
	w.leave("m")
	w.Expect(w.wrote()).NotTo(ContainElement("unlink_subnet"))
}

func keptByAnother(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.addStatic("m", infrav1.StaticIPConfig{IP: "10.9.0.10"})
	w.until("Ready True Ready", "m")
	w.Change("aaaaa1", func(m *inventory.Machine) { m.Owner, m.Annotations, m.AgentName = "alice", nil, "" })
	w.told()
	w.leave("m")
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("machine aaaaa1 was released but keeps the static address 10.9.0.10: MAAS cannot change links of a machine that is Deployed"))
	w.Expect(w.modes("aaaaa1", 0)).To(Equal([]string{"static 10.9.0.10"}), "what runs for somebody else is left alone")
}

func notYetFree(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.addStatic("m", infrav1.StaticIPConfig{IP: "10.8.0.7"})
	w.until("Ready True Ready", "m")
	w.before = func(op string) error {
		if op == "unlink_subnet" {
			return errCut
		}
		return nil
	}
	w.remove("m")
	w.until("Deleting True MAASUnreachable", "m")
	w.Expect(w.Machine("aaaaa3").Status).To(Equal(status.Ready))
	w.restart()
	w.add("next", infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(8), MinMemory: ptr.To(16384), Tags: []string{"fast"}})
	w.reconcile("next", 0)
	w.expect("next", "Ready False NoCapacity", "still names them or has its static address there")
	w.before = nil
	w.leave("m")
	w.until("Ready True Ready", "next")
	w.Expect(w.modes("aaaaa3", 1)).To(ConsistOf(HavePrefix("auto 10.8.0.")))
}

func noInterface(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.addStatic("m", infrav1.StaticIPConfig{IP: "10.9.0.10"})
	w.once("set_workload_annotations", func() {
		w.Change("aaaaa1", func(m *inventory.Machine) { m.Interfaces[0].Enabled = false })
	})
	w.until("Ready True Ready", "m")
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaa2")))
	w.Expect(w.machine("m").Annotations[machine.FailuresAnnotation]).To(ContainSubstring("has no enabled interface on subnet 10.9.0.0/24"))
	w.Expect(w.Machine("aaaaa1").Status).To(Equal(status.Ready))
}

func keepsOwn(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.addStatic("m", infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.19"}})
	w.until("Ready True Ready", "m")
	m := w.machine("m")
	delete(m.Annotations, machine.AddressAnnotation)
	m.Spec.SystemID, m.Spec.ProviderID = nil, nil
	w.Expect(w.client.Update(t.Context(), m)).To(Succeed())
	w.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Interfaces[0].Links[0].IP = status.Allocated, "10.9.0.15" })
	w.restart()
	m.Status = infrav1.MaasMachineStatus{}
	w.Expect(w.client.Status().Update(t.Context(), m)).To(Succeed())
	w.until("Ready True Ready", "m")
	w.Expect(w.addresses("m")).To(Equal([]string{"10.9.0.15"}))
}
