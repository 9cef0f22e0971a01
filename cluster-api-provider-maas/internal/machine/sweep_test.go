// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestSweep covers the requests that a MaasCluster sends to MAAS to find machines without a MaasMachine.
func TestSweep(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When other clusters allocate machines, it should query the event log only if the machines stay":        allocatedByOthers,
		"When a deployed machine has no MaasMachine, it should be found within an hour with few requests":       installedOrphan,
		"When a machine of a failed deployment is being released, the sweep should leave it to its MaasMachine": onItsWayBack,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// lookAsks reconciles the MaasCluster and returns the number of calls of an operation.
func (w *world) lookAsks(operation string) int {
	w.t.Helper()
	w.ResetRequests()
	w.look()
	for _, row := range w.Load.Report().Operations {
		if row.Operation == operation {
			return row.Calls
		}
	}
	return 0
}

func allocatedByOthers(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.owned()
	w.look()
	for _, m := range w.Machines() {
		w.Change(m.SystemID, func(m *inventory.Machine) {
			m.Status, m.Owner, m.AgentName = status.Allocated, "alice", "another-cluster"
		})
	}
	for range 2 {
		w.clock.SetTime(w.clock.Now().Add(2*time.Minute + time.Second))
		w.Expect(w.lookAsks("events.query")).To(BeZero())
	}
	w.clock.SetTime(w.clock.Now().Add(5 * time.Minute))
	w.Expect(w.lookAsks("events.query")).To(Equal(len(w.Machines())), "the log may tell whose they are")
	for _, m := range w.Machines() {
		w.Expect(m.Status).To(Equal(status.Allocated))
	}
}

func onItsWayBack(t *testing.T, cfg *rest.Config) {
	w := newSick(t, cfg, "alice")
	accept := w.stuck(bad)
	w.addPlain("m")
	w.runsOn("m")
	accept()
	w.inState(bad, status.FailedReleasing)
	w.Change(bad, func(m *inventory.Machine) {
		m.Status, m.Owner, m.AgentName = status.FailedDeployment, "alice", "hypershift-maasmachine-"+string(w.machine("m").UID)
	})
	w.clock.SetTime(w.clock.Now().Add(20 * time.Minute))
	w.told()
	w.look()
	w.Expect(strings.Join(w.told(), "\n")).NotTo(ContainSubstring("OrphanReleased "), "the sweep knows nothing of its address, and of how to erase it")
	w.later("m", 1)
	w.inState(bad, status.Ready)
}

func installedOrphan(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.owned()
	k.look()
	for _, m := range k.Machines() {
		k.Change(m.SystemID, func(m *inventory.Machine) {
			m.Status, m.Owner, m.AgentName = status.Deployed, "alice", "another-cluster"
		})
	}
	k.Change(bad, func(m *inventory.Machine) {
		m.AgentName = maas.AllocationKey("dead")
		m.Annotations = map[string]string{maas.AnnotationMachineUID: "dead", maas.AnnotationClusterUID: string(k.cluster().UID)}
	})
	k.ResetRequests()
	for range 63 {
		k.clock.SetTime(k.clock.Now().Add(time.Minute))
		k.look()
	}
	k.inState(bad, status.Ready)
	k.Expect(k.printed()).To(BeNumerically("<=", 2*len(k.Machines())), "MAAS takes long to print a machine")
	k.Expect(k.Machine("aaaaa2").Status).To(Equal(status.Deployed))
}
