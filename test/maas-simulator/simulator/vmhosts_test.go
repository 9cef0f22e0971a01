// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// TestSeededVMHosts verifies what other tests depend on: LXD hosts of a seed compose machines, which deploy and
// disappear with their host.
func TestSeededVMHosts(t *testing.T) {
	g := NewWithT(t)
	seed := simtest.WithVMHosts(simtest.Seed(simtest.Machine{ID: "aaaaa1"}),
		simtest.VMHost{Name: "lxd-1", Zone: "az1", Machine: "aaaaa1", Project: "hs", StoragePools: map[string]int{"a": 100, "b": 50}},
		simtest.VMHost{Name: "lxd-2", Zone: "az2", CPU: 2, CPUOverCommit: 2})
	site := simtest.New(t, seed)
	g.Expect(site.Do("admin", "POST", "vm-hosts/1/?op=compose", "hostname", "one", "storage", "8(b)").Code).To(Equal(200))
	g.Expect(site.Do("admin", "POST", "vm-hosts/2/?op=compose", "hostname", "two", "cores", "2").Code).To(Equal(200))
	g.Expect(site.Do("admin", "POST", "vm-hosts/2/?op=compose", "cores", "2").Code).To(Equal(200), "as much again by over-commit")
	g.Expect(site.Do("admin", "POST", "vm-hosts/2/?op=compose", "cores", "1").Code).To(Equal(503))
	g.Expect(site.Has("one").VM.Project).To(Equal("hs"))
	g.Expect(site.Has("one").Disks[0].Pool).To(Equal("b"))

	site.Settle(time.Hour)
	g.Expect(site.Do("admin", "POST", "machines/"+site.Has("one").SystemID+"/?op=deploy").Code).To(Equal(200))
	site.Settle(time.Hour)
	g.Expect(site.Has("one").IPs()).NotTo(BeEmpty())
	back := simtest.HostAway(t, site.Simulator, "lxd-1")
	site.Settle(time.Minute)
	g.Expect(site.Has("one").PowerState).To(Equal("error"))
	back()
	site.Settle(time.Minute)
	g.Expect(site.Has("one").PowerState).To(Equal("on"))
	simtest.LoseVM(t, site.Simulator, "one")
	g.Expect(site.Do("admin", "POST", "vm-hosts/1/?op=refresh").Code).To(Equal(200))
	g.Expect(site.Machine("one")).To(BeNil())
}
