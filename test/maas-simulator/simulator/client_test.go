// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// client returns a simulator in which operations take no time, and this project's MAAS client for a user of it.
func client(t *testing.T, user string) (*simulator.Simulator, *maas.Client) {
	t.Helper()
	s, err := simulator.New(simulator.Options{Seed: []byte(simtest.WithVMHost), RandomSeed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := maas.NewClient(maas.Config{
		Endpoint: simtest.Serve(t, s), APIKey: s.Key(user), Retry: maas.RetryPolicy{Attempts: 8, BaseDelay: time.Millisecond, MaxDelay: 5 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func TestClientJourney(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	_, c := client(t, "alice")

	version, err := c.GetVersion(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version.Version).To(Equal("3.4.10"))
	me, err := c.WhoAmI(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(me.Username).To(Equal("alice"))

	m, err := c.AllocateMachine(ctx, maas.AllocateRequest{CPUCount: 4, Zone: "north", Pool: "blue", Tags: []string{"fast", "gpu"}, AgentName: "key-1", Storage: "root:100"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m).To(And(HaveField("Hostname", "three"), HaveField("Owner", "alice"), HaveField("Zone.Name", "north")))
	mine, err := c.ListMachines(ctx, maas.MachineFilter{AgentNames: []string{"key-1"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mine).To(HaveLen(1))
	_, err = c.SetWorkloadAnnotations(ctx, m.SystemID, map[string]string{"cluster": "demo"})
	g.Expect(err).NotTo(HaveOccurred())

	m, err = c.DeployMachine(ctx, m.SystemID, maas.DeployRequest{DistroSeries: "custom/node", UserData: []byte("#cloud-config\n"), Comment: "go"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Status).To(Equal(maas.StatusDeploying))
	get := func() maas.Status {
		m, err = c.GetMachine(ctx, m.SystemID)
		g.Expect(err).NotTo(HaveOccurred())
		return m.Status
	}
	g.Eventually(get, "1m", "10ms").Should(Equal(maas.StatusDeployed))
	g.Expect(m.IPAddresses).To(HaveLen(2))
	events, err := c.ListEvents(ctx, maas.EventFilter{SystemIDs: []string{m.SystemID}, Limit: 1})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(events.Events[0].Type).To(Equal("Deployed"))
	state, err := c.QueryPowerState(ctx, m.SystemID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(state)).To(Equal("on"))

	_, err = c.ReleaseMachine(ctx, m.SystemID, maas.ReleaseRequest{Comment: "bye"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(get, "1m", "10ms").Should(Equal(maas.StatusReady))
	g.Expect(m.Owner).To(BeEmpty())
}

func TestClientRefusals(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	_, c := client(t, "alice")
	_, err := c.AllocateMachine(ctx, maas.AllocateRequest{MemoryMiB: 999999})
	g.Expect(maas.IsConflict(err)).To(BeTrue(), "%v", err)
	_, err = c.AllocateMachine(ctx, maas.AllocateRequest{Zone: "nowhere"})
	g.Expect(maas.IsInvalid(err)).To(BeTrue(), "%v", err)
	g.Expect(maas.FieldMessages(err, "zone")).To(Equal([]string{"No such zone(s): nowhere."}))
	_, err = c.GetMachine(ctx, "zzzzzz")
	g.Expect(maas.IsNotFound(err)).To(BeTrue(), "%v", err)
	_, err = c.CreateDNSResource(ctx, "api.maas", 10, nil)
	g.Expect(maas.IsForbidden(err)).To(BeTrue(), "%v", err)
	_, err = c.DeployMachine(ctx, "aaaaa1", maas.DeployRequest{DistroSeries: "nothing"})
	g.Expect(maas.FieldMessages(err, "distro_series")).To(HaveLen(1))
}

func TestClientAsAdministrator(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	s, c := client(t, "admin")
	zones, err := c.ListZones(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(zones).To(HaveLen(3))
	pools, err := c.ListPools(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pools).To(HaveLen(2))
	images, err := c.ListBootResources(ctx, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(images).To(HaveLen(5))
	subnet, err := c.GetSubnet(ctx, "cidr:10.9.0.0/24")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(subnet.Name).To(Equal("prod-net"))
	ranges, err := c.ListUnreservedIPRanges(ctx, 1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ranges).NotTo(BeEmpty())

	_, err = c.CreateTag(ctx, "demo", "mine")
	g.Expect(err).NotTo(HaveOccurred())
	update, err := c.UpdateTagMachines(ctx, "demo", []string{"aaaaa1", "aaaaa2"}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(update).To(Equal(maas.TagUpdate{Added: 2}))
	tagged, err := c.ListTagMachines(ctx, "demo")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tagged).To(HaveLen(2))
	g.Expect(c.DeleteTag(ctx, "demo")).To(Succeed())

	record, err := c.CreateDNSResource(ctx, "api.lab.example", 10, []string{"10.9.0.50"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(record.IPs()).To(Equal([]string{"10.9.0.50"}))
	record, err = c.SetDNSResourceIPs(ctx, record.ID, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(record.IPs()).To(BeEmpty())
	g.Expect(c.DeleteDNSResource(ctx, record.ID)).To(Succeed())

	hosts, err := c.ListVMHosts(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(hosts).To(HaveLen(1))
	vm, err := c.ComposeMachine(ctx, hosts[0].ID, maas.ComposeRequest{Hostname: "vm1", Cores: 2, MemoryMiB: 4096, Storage: "20", Zone: ptr.To(3)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() string {
		m := s.Machine(vm.SystemID)
		return m.Status.String()
	}, "1m", "10ms").Should(Equal("Ready"))
	g.Expect(c.DeleteMachine(ctx, vm.SystemID)).To(Succeed())

	bridge, err := c.CreateBridge(ctx, "aaaaa1", "br0", s.Machine("aaaaa1").Interfaces[0].ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bridge.Name).To(Equal("br0"))
}

func TestClientThroughFaults(t *testing.T) {
	g := NewWithT(t)
	s, c := client(t, "alice")
	for _, kind := range []faults.Kind{faults.Error, faults.Drop, faults.DropAfter} {
		_, err := s.Faults.Add(faults.Rule{Kind: kind, Operation: "machines.read", Count: 1})
		g.Expect(err).NotTo(HaveOccurred())
	}
	all, err := c.ListMachines(t.Context(), maas.MachineFilter{})
	g.Expect(err).NotTo(HaveOccurred(), "reads are retried")
	g.Expect(all).To(HaveLen(5))

	_, err = s.Faults.Add(faults.Rule{Kind: faults.LostAnswer, Operation: "machines.allocate", Count: 1, Status: 502})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.AllocateMachine(t.Context(), maas.AllocateRequest{AgentName: "key-9"})
	if err != nil {
		g.Expect(maas.IsUncertain(err)).To(BeTrue(), "%v", err)
	}
	mine, err := c.ListMachines(t.Context(), maas.MachineFilter{AgentNames: []string{"key-9"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mine).To(HaveLen(1), "what happened can be found by its agent name")
}
