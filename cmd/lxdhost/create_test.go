// SPDX-License-Identifier: Apache-2.0

package lxdhost

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func TestCreate(t *testing.T) {
	tests := map[string]struct {
		change func(*create)
		host   string
	}{
		"a machine name is set":        {func(c *create) { c.machine = "large" }, "large"},
		"a system id is set":           {func(c *create) { c.machine = "aaaaa3" }, "third"},
		"a pool is":                    {func(c *create) { c.pool = "hosts" }, "small"},
		"a pool and a zone are set":    {func(c *create) { c.pool, c.zone = "hosts", "az2" }, "large"},
		"a pool and tags are set":      {func(c *create) { c.pool, c.tags = "hosts", []string{"nvme"} }, "large"},
		"a pool and sizes are set":     {func(c *create) { c.pool, c.cpu, c.memory = "hosts", 33, 1024 }, "third"},
		"an image is set":              {func(c *create) { c.machine, c.image = "small", "ubuntu/noble" }, "small"},
		"the host is to be over-given": {func(c *create) { c.machine, c.cpuOverCommit, c.hostTags = "small", 2.5, []string{"gold"} }, "small"},
	}
	for name, test := range tests {
		t.Run("When "+name+" it should become an LXD host", func(t *testing.T) {
			w := newWorld(t, rack())
			w.Expect(w.create(test.change)).To(Succeed(), w.out.String())
			w.Expect(w.owned()).To(Equal([]string{test.host}))
			hosts := w.hosts()
			w.Expect(hosts).To(HaveLen(1))
			w.Expect(hosts[0].Name).To(Equal(test.host))
			w.Expect(w.out.String()).To(And(ContainSubstring("is allocated: "), ContainSubstring("LXD host "+test.host+" is there: ")))
			if name == "the host is to be over-given" {
				w.Expect(hosts[0].CPUOverCommit).To(Equal(2.5))
				w.Expect(hosts[0].Tags).To(ContainElement("gold"))
			}
		})
	}
}

// TestCreateAgain repeats the command after the host exists.
func TestCreateAgain(t *testing.T) {
	t.Run("When the machine is named, it should change nothing", func(t *testing.T) {
		w := newWorld(t, rack())
		for range 2 {
			w.Expect(w.create(func(c *create) { c.machine = "small" })).To(Succeed(), w.out.String())
		}
		w.Expect(w.owned()).To(Equal([]string{"small"}))
		w.Expect(w.hosts()).To(HaveLen(1))
	})
	t.Run("When the machine comes from a pool, it should create a second host", func(t *testing.T) {
		w := newWorld(t, rack())
		for range 2 {
			w.Expect(w.create(func(c *create) { c.pool = "hosts" })).To(Succeed(), w.out.String())
		}
		w.Expect(w.owned()).To(Equal([]string{"small", "large"}))
		w.Expect(w.hosts()).To(HaveLen(2))
	})
}

// TestCreateCut interrupts the command at each of its calls, before and after MAAS has processed it. A repeated run
// ends with one machine and one host.
func TestCreateCut(t *testing.T) {
	for _, kind := range []faults.Kind{faults.Error, faults.LostAnswer} {
		for _, operation := range []string{"machines.allocate", "machine.set_workload_annotations", "machine.deploy", "vm-host.update", "vm-host.add_tag"} {
			for name, change := range map[string]func(*create){
				"machine": func(c *create) { c.machine = "small" },
				"pool":    func(c *create) { c.pool = "hosts" },
			} {
				t.Run("When "+operation+" of a "+name+" ends with "+string(kind)+" it should go on when it is given again", func(t *testing.T) {
					w := newWorld(t, rack())
					simtest.Fault(t, w.Simulator, faults.Rule{Kind: kind, Operation: operation, Count: 1, Status: 500})
					again := func(c *create) { change(c); c.cpuOverCommit, c.hostTags = 2, []string{"gold"} }
					w.Expect(w.create(again)).NotTo(Succeed())
					w.Expect(w.create(again)).To(Succeed(), w.out.String())
					w.Expect(w.owned()).To(Equal([]string{"small"}))
					hosts := w.hosts()
					w.Expect(hosts).To(HaveLen(1))
					w.Expect(hosts[0].CPUOverCommit).To(Equal(2.0))
					w.Expect(hosts[0].Tags).To(ContainElement("gold"))
				})
			}
		}
	}
	t.Run("When the command is interrupted while it waits, the next run should complete it", func(t *testing.T) {
		w := newWorld(t, rack())
		mend := simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.BootHangs})
		ctx, interrupt := context.WithCancel(t.Context())
		c := &create{connection: w.connection(), pool: "hosts", cpuOverCommit: 1, memoryOverCommit: 1}
		ended := make(chan error)
		go func() { ended <- c.make(ctx, w.maas, w.report()) }()
		w.Eventually(func() status.Status { return w.Machine("small").Status }).Should(Equal(status.Deploying))
		interrupt()
		w.Expect(<-ended).To(MatchError(context.Canceled))
		mend()
		w.Expect(w.Change("aaaaa1", func(m *inventory.Machine) { _ = w.Life.OSReady(m) })).To(BeTrue())
		w.Expect(w.create(func(c *create) { c.pool = "hosts" })).To(Succeed(), w.out.String())
		w.Expect(w.owned()).To(Equal([]string{"small"}))
	})
}

func TestCreateRefused(t *testing.T) {
	tests := map[string]struct {
		seed   string
		fault  faults.Rule
		change func(*create)
		says   string
	}{
		"the pool is empty":                {change: func(c *create) { c.pool, c.zone = "hosts", "default" }, says: "no machine that could be the LXD host is Ready"},
		"the machine does not exist":       {change: func(c *create) { c.machine = "nobody" }, says: `no machine with the system id or name "nobody"`},
		"the machine has another owner":    {seed: simtest.Seed(simtest.Machine{ID: "aaaaa1", Hostname: "a", Status: status.Deployed, Owner: "alice"}), change: func(c *create) { c.machine = "a" }, says: `is Deployed, owner "alice"`},
		"the machine is already allocated": {seed: simtest.Seed(simtest.Machine{ID: "aaaaa1", Hostname: "a", Status: status.Allocated, Owner: "admin"}), change: func(c *create) { c.machine = "a" }, says: "is made of a Ready machine"},
		"the deployment fails":             {fault: faults.Rule{Kind: faults.DeployFails}, change: func(c *create) { c.machine = "small" }, says: "is Failed deployment"},
		"only a VM could be composed":      {seed: simtest.WithVMHosts(rack(), simtest.VMHost{Name: "lxd"}), change: func(c *create) { c.pool, c.zone = "hosts", "default" }, says: "no machine that could be"},
		"MAAS has no VM hosts":             {fault: faults.Rule{Kind: faults.Error, Operation: "vm-hosts.read", Status: 410}, change: func(c *create) { c.machine = "small" }, says: "they ended with version 3.8"},
	}
	for name, test := range tests {
		t.Run("When "+name+" it should say so", func(t *testing.T) {
			if test.seed == "" {
				test.seed = rack()
			}
			w := newWorld(t, test.seed)
			if test.fault.Kind != "" {
				simtest.Fault(t, w.Simulator, test.fault)
			}
			count := len(w.Machines())
			w.Expect(w.create(test.change)).To(MatchError(ContainSubstring(test.says)))
			w.Expect(w.Machines()).To(HaveLen(count))
		})
	}
	t.Run("When the machine is a VM, it should reject the machine", func(t *testing.T) {
		w := newWorld(t, simtest.WithVMHosts(rack(), simtest.VMHost{Name: "lxd"}))
		w.compose("lxd", "vm")
		w.Expect(w.create(func(c *create) { c.machine = "vm" })).To(MatchError(ContainSubstring("is a virtual machine of VM host lxd")))
	})
}
