// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestAttacks covers MAAS outages and changes by other users while machines are deployed, run and are released.
func TestAttacks(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, rule := range map[string]faults.Rule{
		"When MAAS drops connections for half an hour, no machine should be harmed, and all should recover": {Kind: faults.Drop},
		"When a proxy returns 502 for half an hour, no machine should be harmed":                            {Kind: faults.Proxy, Status: http.StatusBadGateway},
		"When a proxy rejects everything for half an hour, no machine should be harmed":                     {Kind: faults.Proxy, Status: http.StatusForbidden},
		"When MAAS is overloaded for half an hour, no machine should be harmed":                             {Kind: faults.Error, Status: http.StatusServiceUnavailable},
		"When MAAS rejects the key for half an hour, no machine should be harmed":                           {Kind: faults.Error, Status: http.StatusUnauthorized},
		"When MAAS acts but its answers break off for half an hour, no machine should be lost":              {Kind: faults.DropAfter},
	} {
		t.Run(name, func(t *testing.T) { outage(t, cfg, rule) })
	}
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a machine is deleted in MAAS during its deployment, the MaasMachine should report that and be deletable":  deletedWhileDeploying,
		"When a machine is released in MAAS during its deployment, the MaasMachine should report that and be deletable": releasedWhileDeploying,
		"When a user marks a machine broken during its release, it should stay Broken":                                  brokenWhileReleased,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// outage makes MAAS unusable for half an hour. One machine runs, one is being released, one is being deployed, and one
// is still to be allocated.
func outage(t *testing.T, cfg *rest.Config, rule faults.Rule) {
	w := newRack(t, cfg, "alice")
	w.owned()
	w.look()
	for _, name := range []string{"runs", "goes", "comes"} {
		w.addPlain(name)
	}
	w.until("Ready True Ready", "runs", "goes")
	w.end("goes")
	w.addPlain("wanted")
	accept := simtest.Fault(t, w.Simulator, rule)
	w.restart()
	w.ResetRequests()
	const each = 15 * time.Second
	for range 30 * time.Minute / each {
		w.clock.SetTime(w.clock.Now().Add(each - 11*time.Second))
		for _, name := range []string{"runs", "comes", "wanted"} {
			w.pass(name) // Takes 11 s.
		}
		_ = w.glance()
		w.unharmed("runs")
	}
	w.Expect(w.machine("wanted").Status.FailureReason).To(BeNil())
	accept()
	w.clock.SetTime(w.clock.Now().Add(15 * time.Minute))
	w.until("Ready True Ready", "runs", "comes", "wanted")
	w.unharmed("runs")
	held := map[string]string{}
	for _, name := range []string{"runs", "comes", "wanted"} {
		id := *w.machine(name).Spec.SystemID
		w.Expect(held).NotTo(HaveKey(id))
		held[id] = name
	}
	w.leave("runs", "comes", "wanted", "goes")
	w.taken()
	w.Eventually(func() int {
		w.clock.SetTime(w.clock.Now().Add(6 * time.Minute))
		_ = w.glance()
		left := 0
		for _, m := range w.Machines() {
			if m.Owner != "" {
				left++
			}
		}
		return left
	}, patience, "20ms").Should(BeZero(), "an allocation without an answer must not be forgotten")
}

// newDeploying returns a fixture with a MaasMachine whose machine is being deployed; the deployment never ends.
func newDeploying(t *testing.T, cfg *rest.Config, name string) (w *world, systemID string) {
	w = newRack(t, cfg, "alice")
	w.owned()
	w.look()
	simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.BootHangs})
	w.addPlain(name)
	w.until("Ready False MachineDeploying", name)
	return w, *w.machine(name).Spec.SystemID
}

func deletedWhileDeploying(t *testing.T, cfg *rest.Config) {
	w, id := newDeploying(t, cfg, "m")
	w.Change(id, func(m *inventory.Machine) { w.Life.Remove(m) })
	w.later("m", 1)
	w.expect("m", "MachineDeployed Unknown MachineNotFound", "it was deleted there")
	w.Expect(w.machine("m").Status.FailureReason).To(HaveValue(Equal("CreateError")), "a health check replaces it at once")
	w.leave("m")
	w.expectAllFree()
}

func releasedWhileDeploying(t *testing.T, cfg *rest.Config) {
	w, id := newDeploying(t, cfg, "m")
	w.Change(id, func(m *inventory.Machine) { w.Expect(w.Life.Release(m, "alice", "by hand", false)).To(Succeed()) })
	w.inState(id, status.Ready)
	w.later("m", 1)
	w.expect("m", "Ready False MachineTerminatedReason", "released outside Cluster API")
	w.Change(id, func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Deployed, "alice", "juju" })
	w.leave("m")
	w.Expect(w.Machine(id).Status).To(Equal(status.Deployed), "it is another's by now")
}

func brokenWhileReleased(t *testing.T, cfg *rest.Config) {
	w, id := newRun(t, cfg, "m")
	w.stuck(id)
	w.end("m")
	w.inState(id, status.FailedReleasing)
	w.Change(id, func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Broken, "", "" })
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	w.leave("m")
	w.Expect(w.Machine(id).Status).To(Equal(status.Broken))
}
