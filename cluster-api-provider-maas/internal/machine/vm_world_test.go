// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

// lxdHost is an LXD host of a fixture. The defaults of empty fields are 16 cores, 64 GiB, and the zone and the pool
// default.
type lxdHost struct {
	name, zone, project string
	cores, memory       int
	stores              map[string]int64
}

// newLXD returns a fixture with the machines of simtest.Rack, LXD hosts, and an administrator's key.
func newLXD(t *testing.T, cfg *rest.Config, hosts ...lxdHost) *world {
	t.Helper()
	w := newRack(t, cfg, "admin")
	for i, h := range hosts {
		w.addHost(100+i, h)
	}
	return w
}

func (w *world) addHost(id int, h lxdHost) {
	w.t.Helper()
	host := &inventory.VMHost{ID: id, Name: h.name, Type: "lxd", ZoneID: 1, Architectures: []string{"amd64/generic"}, Capabilities: []string{"composable"},
		Cores: 16, Memory: 65536, Storage: 1e12, CPUOverCommit: 1, MemoryOverCommit: 1, Parameters: map[string]any{"project": "nodes"}}
	if h.cores > 0 {
		host.Cores = h.cores
	}
	if h.memory > 0 {
		host.Memory = int64(h.memory)
	}
	if h.project != "" {
		host.Parameters["project"] = h.project
	}
	if h.stores == nil {
		h.stores = map[string]int64{"default": 1e12}
	}
	for name, free := range h.stores {
		host.StoragePools = append(host.StoragePools, inventory.StoragePool{ID: name, Name: name, Type: "zfs", Total: free, Default: name == "default"})
	}
	w.Expect(w.DB.Update(func() error {
		if zone := w.DB.ZoneByName(h.zone); zone != nil {
			host.ZoneID = zone.ID
		}
		w.DB.VMHosts.Put(host)
		return nil
	})).To(Succeed())
}

func (w *world) dropHost(id int) {
	w.t.Helper()
	w.Expect(w.DB.Update(func() error {
		w.DB.VMHosts.Delete(id)
		return nil
	})).To(Succeed())
}

// addVM creates a MaasMachine with 2 cores and 4 GiB in provisioningMode lxd.
func (w *world) addVM(name string, change ...func(*infrav1.MaasMachineSpec)) {
	w.t.Helper()
	spec := infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(2), MinMemory: ptr.To(4096), ProvisioningMode: infrav1.ProvisioningModeLXD,
		LXDConfig: &infrav1.LXDMachineConfig{}}
	for _, do := range change {
		do(&spec)
	}
	w.add(name, spec)
}

// vms returns the virtual machines in MAAS.
func (w *world) vms() []*inventory.Machine {
	var all []*inventory.Machine
	for _, m := range w.Machines() {
		if lxd.UIDOf(m.Hostname) != "" {
			all = append(all, m)
		}
	}
	return all
}

// composing reconciles the MaasMachine until it has a virtual machine in MAAS, and no further.
func (w *world) composing(name string) *inventory.Machine {
	w.t.Helper()
	place := &lxd.Placement{}
	for n := 0; n < 3 && place.SystemID == ""; n++ {
		w.reconcile(name, time.Second)
		if now := lxd.PlacementOf(w.machine(name)); now != nil {
			place = now
		}
	}
	w.Expect(place.SystemID).NotTo(BeEmpty())
	return w.Machine(place.SystemID)
}
