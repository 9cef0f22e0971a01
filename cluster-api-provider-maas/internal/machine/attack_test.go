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

// TestAttacks is about what others do to MAAS while machines come, run and go.
func TestAttacks(t *testing.T) {
	cfg := testenv.Start(t, crds.Infrastructure, crds.ClusterAPI)
	for name, rule := range map[string]faults.Rule{
		"When MAAS hangs up for half an hour, nothing should be harmed, and all go on then":          {Kind: faults.Drop},
		"When a proxy has no MAAS behind it for half an hour, nothing should be harmed":              {Kind: faults.Proxy, Status: http.StatusBadGateway},
		"When a proxy refuses everything for half an hour, nothing should be harmed":                 {Kind: faults.Proxy, Status: http.StatusForbidden},
		"When MAAS is overloaded for half an hour, nothing should be harmed":                         {Kind: faults.Error, Status: http.StatusServiceUnavailable},
		"When MAAS takes no key for half an hour, nothing should be harmed":                          {Kind: faults.Error, Status: http.StatusUnauthorized},
		"When MAAS does what it is told and its answers break off for half an hour, nothing is lost": {Kind: faults.DropAfter},
	} {
		t.Run(name, func(t *testing.T) { outage(t, cfg, rule) })
	}
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a machine is deleted in MAAS while it is installed, it should be lost, and go":  deletedWhileDeploying,
		"When a machine is released in MAAS while it is installed, it should be lost, and go": releasedWhileDeploying,
		"When somebody marks a machine broken while it is given back, that should stay":       brokenWhileReleased,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// outage has MAAS away for half an hour while one machine runs, one is given back, one is installed and one is wanted.
func outage(t *testing.T, cfg *rest.Config, rule faults.Rule) {
	k := newRack(t, cfg, "alice")
	k.owned()
	k.look()
	for _, name := range []string{"runs", "goes", "comes"} {
		k.addPlain(name)
	}
	k.until("Ready True Ready", "runs", "goes")
	k.end("goes")
	k.addPlain("wanted")
	mend := simtest.Fault(t, k.Simulator, rule)
	k.restart()
	k.ResetRequests()
	const each = 15 * time.Second
	for range 30 * time.Minute / each {
		k.clock.SetTime(k.clock.Now().Add(each - 11*time.Second))
		for _, name := range []string{"runs", "comes", "wanted"} {
			k.pass(name) // Takes 11 s.
		}
		_ = k.glance()
		k.unharmed("runs")
	}
	k.Expect(k.machine("wanted").Status.FailureReason).To(BeNil())
	mend()
	k.clock.SetTime(k.clock.Now().Add(15 * time.Minute))
	k.until("Ready True Ready", "runs", "comes", "wanted")
	k.unharmed("runs")
	held := map[string]string{}
	for _, name := range []string{"runs", "comes", "wanted"} {
		id := *k.machine(name).Spec.SystemID
		k.Expect(held).NotTo(HaveKey(id))
		held[id] = name
	}
	k.leave("runs", "comes", "wanted", "goes")
	k.taken()
	k.Eventually(func() int {
		k.clock.SetTime(k.clock.Now().Add(6 * time.Minute))
		_ = k.glance()
		left := 0
		for _, m := range k.Machines() {
			if m.Owner != "" {
				left++
			}
		}
		return left
	}, "20s", "20ms").Should(BeZero(), "an allocation without an answer must not be forgotten")
}

// newDeploying is a rack with a MaasMachine whose machine is being installed, and does not come to an end.
func newDeploying(t *testing.T, cfg *rest.Config, name string) (k *rack, systemID string) {
	k = newRack(t, cfg, "alice")
	k.owned()
	k.look()
	simtest.Fault(t, k.Simulator, faults.Rule{Kind: faults.BootHangs})
	k.addPlain(name)
	k.until("Ready False MachineDeploying", name)
	return k, *k.machine(name).Spec.SystemID
}

func deletedWhileDeploying(t *testing.T, cfg *rest.Config) {
	k, id := newDeploying(t, cfg, "m")
	k.Change(id, func(m *inventory.Machine) { k.Life.Remove(m) })
	k.later("m", 1)
	k.expect("m", "MachineDeployed Unknown MachineNotFound", "it was deleted there")
	k.Expect(k.machine("m").Status.FailureReason).To(HaveValue(Equal("CreateError")), "a health check replaces it at once")
	k.leave("m")
	k.expectAllFree()
}

func releasedWhileDeploying(t *testing.T, cfg *rest.Config) {
	k, id := newDeploying(t, cfg, "m")
	k.Change(id, func(m *inventory.Machine) { k.Expect(k.Life.Release(m, "alice", "by hand", false)).To(Succeed()) })
	k.inState(id, status.Ready)
	k.later("m", 1)
	k.expect("m", "Ready False MachineTerminatedReason", "released from outside")
	k.Change(id, func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Deployed, "alice", "juju" })
	k.leave("m")
	k.Expect(k.Machine(id).Status).To(Equal(status.Deployed), "it is another's by now")
}

func brokenWhileReleased(t *testing.T, cfg *rest.Config) {
	k, id := newRun(t, cfg, "m")
	k.stuck(id)
	k.end("m")
	k.inState(id, status.FailedReleasing)
	k.Change(id, func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Broken, "", "" })
	k.clock.SetTime(k.clock.Now().Add(time.Hour))
	k.leave("m")
	k.Expect(k.Machine(id).Status).To(Equal(status.Broken))
}
