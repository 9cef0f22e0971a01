// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// region returns a client of a simulated MAAS region of the given version.
func region(t *testing.T, version, user string) *maas.Client {
	t.Helper()
	s, err := simulator.New(simulator.Options{Seed: []byte(simtest.WithVMHost), Version: version, RandomSeed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, maas.Config{Endpoint: simtest.Serve(t, s), APIKey: s.Key(user)})
}

func TestConformance(t *testing.T) {
	for _, version := range []string{"3.2", "3.4", "3.5", "3.6", "3.7", "main"} {
		t.Run("When the MAAS version is "+version+", it should run the complete lifecycle of a regular user's machine", func(t *testing.T) {
			g := NewWithT(t)
			c, ctx := region(t, version, "alice"), t.Context()
			user, err := c.WhoAmI(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(user.IsSuperuser).To(BeFalse())

			m, err := c.AllocateMachine(ctx, maas.AllocateRequest{CPUCount: 3, MemoryMiB: 8000, Zone: "north", Pool: "blue",
				Tags: []string{"fast", "gpu"}, Architecture: "amd64", Storage: "root:100", AgentName: "key-1", Comment: "c"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.Hostname).To(Equal("three"), "all of several tags count")
			g.Expect(m.Status).To(Equal(maas.StatusAllocated))
			g.Expect(m.Owner).To(Equal("alice"))
			g.Expect(m.PhysicalBlockDevices).To(HaveLen(2))

			held, err := c.ListMachines(ctx, maas.MachineFilter{AgentNames: []string{"key-1"}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(held).To(HaveLen(1))
			none, err := c.ListMachines(ctx, maas.MachineFilter{AgentNames: []string{"key-2"}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(none).To(BeEmpty())
			mine, err := c.ListMachines(ctx, maas.MachineFilter{Owners: []string{"alice"}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mine).To(HaveLen(1))
			both, err := c.ListMachines(ctx, maas.MachineFilter{SystemIDs: []string{m.SystemID}, AgentNames: []string{"key-0", "key-1"}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(both).To(HaveLen(1), "several values of a filter are alternatives, several filters are not")

			m, err = c.SetWorkloadAnnotations(ctx, m.SystemID, map[string]string{maas.AnnotationMachineUID: "u"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.Annotations).To(HaveKeyWithValue(maas.AnnotationMachineUID, "u"))

			_, err = c.DeployMachine(ctx, m.SystemID, maas.DeployRequest{DistroSeries: "custom/none"})
			g.Expect(maas.FieldMessages(err, "distro_series")).NotTo(BeEmpty(), "%v", err)
			m, err = c.DeployMachine(ctx, m.SystemID, maas.DeployRequest{DistroSeries: "custom/node", UserData: []byte("#cloud-config\n")})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.Status).To(Equal(maas.StatusDeploying))
			state := func() maas.Status {
				seen, err := c.GetMachine(ctx, m.SystemID)
				g.Expect(err).NotTo(HaveOccurred())
				m = seen
				return m.Status
			}
			g.Eventually(state, 2*time.Minute).Should(Equal(maas.StatusDeployed))
			g.Expect(m.IPAddresses).NotTo(BeEmpty())
			g.Expect(m.PowerState).To(Equal(maas.PowerOn))

			_, err = c.ReleaseMachine(ctx, m.SystemID, maas.ReleaseRequest{Comment: "done"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Eventually(state, 2*time.Minute).Should(Equal(maas.StatusReady))
			g.Expect(m.Annotations).To(BeEmpty())
			held, err = c.ListMachines(ctx, maas.MachineFilter{AgentNames: []string{"key-1"}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(held).To(BeEmpty(), "a release clears the key")
		})
	}
}

func TestConformanceOfRefusals(t *testing.T) {
	g := NewWithT(t)
	alice, ctx := region(t, "main", "alice"), t.Context()
	_, err := alice.AllocateMachine(ctx, maas.AllocateRequest{MemoryMiB: 9999999})
	g.Expect(maas.IsConflict(err)).To(BeTrue(), "%v", err)
	_, err = alice.AllocateMachine(ctx, maas.AllocateRequest{Zone: "nowhere"})
	g.Expect(maas.FieldMessages(err, "zone")).NotTo(BeEmpty(), "%v", err)
	_, err = alice.GetMachine(ctx, "zzzzzz")
	g.Expect(maas.IsNotFound(err)).To(BeTrue(), "%v", err)
	_, err = alice.CreateTag(ctx, "t", "")
	g.Expect(maas.IsForbidden(err)).To(BeTrue(), "%v", err)
	_, err = alice.ListVMHosts(ctx)
	g.Expect(maas.IsGone(err)).To(BeTrue(), "%v", err)
	_, err = alice.AbortMachine(ctx, "aaaaa1", "")
	g.Expect(err).To(HaveOccurred())
	wrong := newClient(t, maas.Config{Endpoint: alice.Endpoint()})
	_, err = wrong.WhoAmI(ctx)
	g.Expect(maas.IsUnauthorized(err)).To(BeTrue(), "%v", err)
}

func TestConformanceOfSmallEndpoints(t *testing.T) {
	g := NewWithT(t)
	c, ctx := region(t, "3.4", "admin"), t.Context()
	check := func(n int, err error) {
		t.Helper()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(n).To(BeNumerically(">", 0))
	}
	version, err := c.GetVersion(ctx)
	check(len(version.Version), err)
	zones, err := c.ListZones(ctx)
	check(len(zones), err)
	pools, err := c.ListPools(ctx)
	check(len(pools), err)
	images, err := c.ListBootResources(ctx, maas.ImagesUploaded)
	check(len(images), err)
	domains, err := c.ListDomains(ctx)
	check(len(domains), err)
	subnets, err := c.ListSubnets(ctx)
	check(len(subnets), err)
	subnet, err := c.GetSubnet(ctx, "cidr:10.9.0.0/24")
	check(subnet.ID, err)
	free, err := c.ListUnreservedIPRanges(ctx, subnet.ID)
	check(len(free), err)
	interfaces, err := c.ListInterfaces(ctx, "aaaaa3")
	check(len(interfaces), err)
	hosts, err := c.ListVMHosts(ctx)
	check(len(hosts), err)
	setting, err := c.GetConfig(ctx, "default_distro_series")
	check(len(setting), err)
	_, err = c.CreateTag(ctx, "new", "made by a test")
	g.Expect(err).NotTo(HaveOccurred())
	update, err := c.UpdateTagMachines(ctx, "new", []string{"aaaaa1", "aaaaa2"}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(update).To(Equal(maas.TagUpdate{Added: 2}))
	tagged, err := c.ListTagMachines(ctx, "new")
	check(len(tagged), err)
	tags, err := c.ListTags(ctx)
	check(len(tags), err)
	g.Expect(c.DeleteTag(ctx, "new")).To(Succeed())

	resource, err := c.CreateDNSResource(ctx, "api.lab.example", 10, []string{"10.9.0.60", "10.9.0.61"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resource.IPs()).To(ConsistOf("10.9.0.60", "10.9.0.61"))
	resource, err = c.SetDNSResourceIPs(ctx, resource.ID, []string{"10.9.0.61"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resource.IPs()).To(Equal([]string{"10.9.0.61"}))
	names, err := c.ListDNSResources(ctx, "api.lab.example")
	check(len(names), err)
	g.Expect(c.DeleteDNSResource(ctx, resource.ID)).To(Succeed())

	address, err := c.ReserveIPAddress(ctx, "10.9.0.0/24", "10.9.0.99", "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(address.IP).To(Equal("10.9.0.99"))
	addresses, err := c.ListIPAddresses(ctx)
	check(len(addresses), err)
	g.Expect(c.ReleaseIPAddress(ctx, "10.9.0.99")).To(Succeed())

	_, err = c.PowerOffMachine(ctx, "aaaaa1", true, "")
	g.Expect(err).NotTo(HaveOccurred())
	power, err := c.QueryPowerState(ctx, "aaaaa1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(power).To(Equal(maas.PowerOff))
	parameters, err := c.GetPowerParameters(ctx, "aaaaa1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parameters).NotTo(BeNil())
	m, err := c.UpdateMachine(ctx, "aaaaa1", map[string]string{"description": "seen"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Description).To(Equal("seen"))
	vm, err := c.ComposeMachine(ctx, hosts[0].ID, maas.ComposeRequest{Cores: 2, MemoryMiB: 2048, SkipCommissioning: true, Zone: &zones[0].ID})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.DeleteMachine(ctx, vm.SystemID)).To(Succeed())
	_, err = c.ListEvents(ctx, maas.EventFilter{Hostnames: []string{"one"}, Level: "DEBUG", Limit: 5})
	g.Expect(err).NotTo(HaveOccurred())
	raw, err := c.Raw(ctx, "fabrics/", nil)
	check(len(raw), err)
}

func TestVMHostsOfARegion(t *testing.T) {
	g := NewWithT(t)
	c, ctx := region(t, "3.5", "admin"), t.Context()
	made, err := c.CreateVMHost(ctx, map[string]string{"type": "lxd", "name": "lxd-2", "power_address": "10.0.0.2:8443", "project": "nodes", "zone": "north"})
	g.Expect(err).NotTo(HaveOccurred())
	parameters, err := c.GetVMHostParameters(ctx, made.ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parameters).To(Equal(maas.VMHostParameters{PowerAddress: "10.0.0.2:8443", Project: "nodes"}))
	host, err := c.AddVMHostTag(ctx, made.ID, "draining")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(host.Tags).To(ContainElement("draining"))
	host, err = c.RemoveVMHostTag(ctx, made.ID, "draining")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(host.Tags).NotTo(ContainElement("draining"))
	host, err = c.UpdateVMHost(ctx, made.ID, map[string]string{"cpu_over_commit_ratio": "2"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(host.CPUOverCommitRatio).To(BeEquivalentTo(2))

	vm, err := c.ComposeMachine(ctx, made.ID, maas.ComposeRequest{Hostname: "vm-1", Cores: 3, MemoryMiB: 4096, Storage: "root:20", Zone: &made.Zone.ID})
	g.Expect(err).NotTo(HaveOccurred())
	host, err = c.RefreshVMHost(ctx, made.ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(host.Used.Cores-made.Used.Cores).To(Equal(3), "what was composed is used")
	composed, err := c.ListMachines(ctx, maas.MachineFilter{Hostnames: []string{"vm-1"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(composed).To(HaveLen(1))
	g.Expect(composed[0]).To(And(HaveField("SystemID", vm.SystemID), HaveField("PowerType", "lxd"), HaveField("Zone.Name", "north"),
		HaveField("Pod.Name", "lxd-2")))
	_, err = c.ComposeMachine(ctx, made.ID, maas.ComposeRequest{Hostname: "vm-1"})
	g.Expect(maas.FieldMessages(err, "hostname")).NotTo(BeEmpty(), "a name is composed once: %v", err)
	_, err = c.ComposeMachine(ctx, made.ID, maas.ComposeRequest{Cores: 16, MemoryMiB: 60000})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.ComposeMachine(ctx, made.ID, maas.ComposeRequest{Cores: 16, MemoryMiB: 60000})
	g.Expect(maas.IsUnavailable(err)).To(BeTrue(), "a host that is full says so: %v", err)
	g.Expect(c.DeleteMachine(ctx, vm.SystemID)).To(Succeed())
	_, err = c.GetMachine(ctx, vm.SystemID)
	g.Expect(maas.IsNotFound(err)).To(BeTrue(), "%v", err)
	g.Expect(c.DeleteVMHost(ctx, made.ID, true)).To(Succeed())
}
