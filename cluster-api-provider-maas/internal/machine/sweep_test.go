package machine_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestSweep is about what a cluster asks of MAAS for the sake of machines that may have been forgotten.
func TestSweep(t *testing.T) {
	cfg := testenv.Start(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When other clusters allocate machines, it should ask about them only when they stay":            allocatedByOthers,
		"When a machine of a failed deployment is on its way back, it should be left to its MaasMachine": onItsWayBack,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// lookAsks counts the calls of an operation that a look costs.
func (k *rack) lookAsks(operation string) int {
	k.t.Helper()
	k.ResetRequests()
	k.look()
	for _, row := range k.Load.Report().Operations {
		if row.Operation == operation {
			return row.Calls
		}
	}
	return 0
}

func allocatedByOthers(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.owned()
	k.look()
	for _, m := range k.Machines() {
		k.Change(m.SystemID, func(m *inventory.Machine) {
			m.Status, m.Owner, m.AgentName = status.Allocated, "alice", "another-cluster"
		})
	}
	for range 2 {
		k.clock.SetTime(k.clock.Now().Add(2*time.Minute + time.Second))
		k.Expect(k.lookAsks("events.query")).To(BeZero())
	}
	k.clock.SetTime(k.clock.Now().Add(5 * time.Minute))
	k.Expect(k.lookAsks("events.query")).To(Equal(len(k.Machines())), "the log may tell whose they are")
	for _, m := range k.Machines() {
		k.Expect(m.Status).To(Equal(status.Allocated))
	}
}

func onItsWayBack(t *testing.T, cfg *rest.Config) {
	k := newSick(t, cfg, "alice")
	mend := k.stuck(bad)
	k.addPlain("m")
	k.runsOn("m")
	mend()
	k.inState(bad, status.FailedReleasing)
	k.Change(bad, func(m *inventory.Machine) {
		m.Status, m.Owner, m.AgentName = status.FailedDeployment, "alice", "hypershift-maasmachine-"+string(k.machine("m").UID)
	})
	k.clock.SetTime(k.clock.Now().Add(20 * time.Minute))
	k.told()
	k.look()
	k.Expect(strings.Join(k.told(), "\n")).NotTo(ContainSubstring("OrphanReleased"), "the sweep knows nothing of its address, and of how to erase it")
	k.later("m", 1)
	k.inState(bad, status.Ready)
}
