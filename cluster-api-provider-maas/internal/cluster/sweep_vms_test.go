// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func TestStrayVirtualMachines(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a MaasMachine was force-deleted, only its virtual machine should be deleted":          straysDeleted,
		"When a stray virtual machine cannot be deleted, the MaasCluster should stay and report it": straysKeep,
		"When MAAS does not list the stray virtual machines, the MaasCluster should stay":           straysUnseen,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// addVM adds a machine to MAAS that was composed on an LXD host.
func (w *world) addVM(id, hostname string, change ...func(*inventory.Machine)) {
	w.t.Helper()
	host := 7
	w.Expect(w.DB.Update(func() error {
		w.DB.VMHosts.Put(&inventory.VMHost{ID: host, Name: "h1", Type: "lxd", ZoneID: 1, Capabilities: []string{"composable"}, Cores: 16, Memory: 65536,
			CPUOverCommit: 1, MemoryOverCommit: 1, Parameters: map[string]any{"project": "default"}})
		m := &inventory.Machine{ID: w.DB.Next("machines"), SystemID: id, Hostname: hostname, PowerType: "lxd", PowerState: "off", Status: status.Ready, ZoneID: 1, PodID: &host,
			VM: &inventory.VM{Instance: hostname}, Extra: map[string]any{}, Token: w.DB.NewToken()}
		for _, do := range change {
			do(m)
		}
		w.DB.Machines.Put(m)
		return nil
	})).To(Succeed())
}

// vms returns the machines in MAAS, all of which are on the LXD host.
func (w *world) vms() []string {
	var ids []string
	for _, m := range w.Machines() {
		ids = append(ids, m.SystemID)
	}
	return ids
}

func straysDeleted(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	mine := w.addAsked("provider")
	living := string(w.controlPlane("living", false).UID)
	w.reconcile(0)

	gone := func() string { return string(uuid.NewUUID()) }
	held := gone()
	w.addVM("ready", lxd.Hostname(gone(), mine, 0))
	w.addVM("commissioning", lxd.Hostname(gone(), mine, 1), func(m *inventory.Machine) { m.Status, m.Owner = status.Commissioning, provider })
	for id, is := range map[string]status.Status{"ill-born": status.FailedCommissioning, "ill": status.FailedTesting, "broken": status.Broken, "tested": status.Testing, "new": status.New} {
		w.addVM(id, lxd.Hostname(gone(), mine, 0), func(m *inventory.Machine) { m.Status = is })
	}
	w.addVM("installed", lxd.Hostname(held, mine, 0), func(m *inventory.Machine) {
		m.Status, m.Owner, m.AgentName, m.Annotations = status.Deployed, provider, maas.AllocationKey(held), marks(mine, held)
	})
	w.addVM("living", lxd.Hostname(living, mine, 0))
	w.addVM("another", lxd.Hostname(gone(), "another", 0))
	w.addVM("unmarked", lxd.Hostname(gone(), "", 0))
	w.addVM("human", "web-1")
	w.addVM("metal", lxd.Hostname(gone(), mine, 0), func(m *inventory.Machine) { m.PowerType = "ipmi" })
	w.addVM("taken", lxd.Hostname(gone(), mine, 0), func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Allocated, "alice", "hers" })
	kept := []string{"living", "another", "unmarked", "human", "metal", "taken"}

	w.reconcile(time.Minute)
	w.Expect(w.vms()).To(ContainElements("ready", "commissioning"), "all machines are looked at each hour")
	w.reconcile(2 * time.Hour)
	w.Expect(w.vms()).To(ConsistOf(kept))
	for range 8 {
		w.Expect(w.recorder.Events).To(Receive(HavePrefix("Warning OrphanDeleted deleted virtual machine ")))
	}
	w.reconcile(2 * time.Hour)
	w.Expect(w.recorder.Events).To(BeEmpty())
	w.Expect(w.vms()).To(ConsistOf(kept))
}

func straysKeep(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	mine := w.addAsked("provider")
	w.reconcile(0)
	w.addVM("stray", lxd.Hostname(string(uuid.NewUUID()), mine, 0), func(m *inventory.Machine) { m.Locked = true })
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(time.Second)
	w.Expect(w.gone()).To(BeFalse())
	w.expect("Deleting", "True OrphansLeft", "(stray) is Ready: cannot ")
	w.Change("stray", func(m *inventory.Machine) { m.Locked = false })
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.vms()).To(BeEmpty())
}

func straysUnseen(t *testing.T, cfg *rest.Config) {
	for operation, says := range map[string]string{"vm-hosts.read": "the hosts rest", "machines.read": "the machines rest"} {
		w := newWorld(t, cfg)
		mine := w.addAsked("provider")
		w.reconcile(0)
		w.addVM("stray", lxd.Hostname(string(uuid.NewUUID()), mine, 0))
		accept := simtest.Refuse(t, w.Simulator, operation, "", http.StatusServiceUnavailable, says)
		w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
		w.reconcile(5 * time.Minute)
		w.Expect(w.gone()).To(BeFalse(), operation)
		w.Expect(meta.FindStatusCondition(w.infra().Status.Conditions, "Deleting")).To(HaveField("Message", ContainSubstring(says)))
		accept()
		w.reconcile(5 * time.Minute)
		w.Expect(w.gone()).To(BeTrue(), operation)
		w.Expect(w.vms()).To(BeEmpty(), operation)
	}
}
