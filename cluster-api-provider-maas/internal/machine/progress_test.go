// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func TestProgress(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a failed machine is never released, it should use another machine and continue the release": deadMachine,
		"When the power control of a failed machine does not respond, it should use another machine":      deadPower,
		"When MAAS rejects every deployment, it should try some machines and then report the MAAS error":  refusedDeployment,
		"When a conflict persists, it should not retry in a hot loop":                                     standingConflict,
		"When a deployed machine can't be powered on, the MaasMachine should fail":                        staysOff,
		"When a deployed machine fails its hardware tests, the MaasMachine should fail":                   failsTests,
		"When a machine stays in any state, the MaasMachine should eventually finish or report a problem": everyStateEnds,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// frozen makes MAAS accept every call about a machine and leave the machine in its current state.
func frozen(w *world, id string) {
	now := w.Machine(id).Status
	w.after = func(string) error {
		w.edit(id, func(m *inventory.Machine) { m.Status, m.Owner = now, "provider" })
		return nil
	}
}

func deadMachine(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", CPU: 2, Hostname: "dead"}, simtest.Machine{ID: "bbbbbb", CPU: 8})
	simtest.FailDeployments(t, w.Simulator, "dead", 1)
	released := w.slow(faults.SlowRelease)
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.expect("m", "Ready False MachineDeployFailed", "before another machine is tried, machine dead (aaaaaa) is Releasing")
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status = status.FailedReleasing })
	frozen(w, "aaaaaa")
	w.passes("m", 4)
	w.restart()
	w.passes("m", 2)
	w.expect("m", "Ready True Ready", "")
	w.reconcile("m", 3*time.Minute)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.expect("m", "FailedMachinesReleased False MachineReleaseFailed", "machine dead (aaaaaa) is Releasing failed: MAAS could not release it")
	for range 24 {
		w.reconcile("m", time.Hour)
	}
	w.Expect(strings.Join(w.told(), "\n")).NotTo(ContainSubstring("MachineReleased"), "MAAS does not have it back")
	w.Expect(w.count("release")).To(BeNumerically("<", 30), "it is asked again, and seldom")

	w.remove("m")
	released()
	w.passes("m", 5)
	w.expect("m", "Deleting True MachineReleaseFailed", "dead (aaaaaa)") // No MaasCluster takes over the release.
	w.Expect(w.Machine("bbbbbb").Status).To(Equal(status.Ready), "the stuck one does not keep the other")
	w.after = nil
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Ready, "", "" })
	w.reconcile("m", 3*time.Minute)
	w.Expect(w.gone("m")).To(BeTrue(), "nothing of it is left in MAAS")
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("MachineReleased machine dead (aaaaaa) is Ready"))
}

func deadPower(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", CPU: 2, Hostname: "dead"}, simtest.Machine{ID: "bbbbbb", CPU: 8})
	simtest.FailDeployments(t, w.Simulator, "dead", 9)
	accept := w.refuse("machine.release", "aaaaaa", http.StatusServiceUnavailable, "the BMC does not answer")
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 8)
	w.expect("m", "Ready True Ready", "")
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.expect("m", "FailedMachinesReleased False MAASUnavailable", "the BMC does not answer")
	for range 100 {
		w.reconcile("m", 15*time.Minute)
	}
	w.Expect(w.count("release")).To(BeNumerically("<", 120))
	accept()
	w.passes("m", 20)
	w.expect("m", "FailedMachinesReleased True MachineReleased", "")
	w.Expect(w.held()).To(HaveLen(1))
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("MachineReleased machine dead (aaaaaa) is Ready"))
}

func refusedDeployment(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"}, simtest.Machine{ID: "bbbbbb"}, simtest.Machine{ID: "cccccc"}, simtest.Machine{ID: "dddddd"})
	w.refuse("machine.deploy", "", http.StatusBadRequest, `{"hwe_kernel": ["hwe-9 has no kernels available."]}`)
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 2)
	w.expect("m", "Ready False MAASInvalidParameter", "hwe-9 has no kernels available")
	for range 25 * 60 {
		w.reconcile("m", time.Minute)
	}
	w.expect("m", "Ready False DeployAttemptsExhausted", "hwe-9 has no kernels available")
	w.Expect(w.machine("m").Status.FailureReason).To(HaveValue(Equal("CreateError")))
	w.Expect(w.count("deploy")).To(BeNumerically("<", 20))
	w.restart()
	w.wrote()
	w.passes("m", 20)
	w.Expect(w.count("deploy")).To(BeZero(), "that is final")
	w.Expect(w.held()).To(HaveLen(1))
}

func standingConflict(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", CPU: 2}, simtest.Machine{ID: "bbbbbb", CPU: 8})
	w.refuse("machine.deploy", "aaaaaa", http.StatusConflict, "Invalid transition: Allocated -> Deploying.")
	w.add("m", infrav1.MaasMachineSpec{})
	for range 120 {
		w.reconcile("m", time.Second)
	}
	w.expect("m", "Ready False MAASError", "Invalid transition")
	w.Expect(w.count("deploy")).To(BeNumerically("<=", 4))
	for range 15 {
		w.reconcile("m", time.Minute)
	}
	w.expect("m", "Ready True Ready", "")
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
}

func staysOff(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.expect("m", "Ready True Ready", "")
	w.refuse("machine.power_on", "", http.StatusServiceUnavailable, "the BMC does not answer")
	w.edit("aaaaaa", func(m *inventory.Machine) { m.PowerState = "off" })
	w.reconcile("m", 3*time.Hour)
	for range 9 {
		w.reconcile("m", 2*time.Minute)
	}
	w.Expect(w.machine("m").Status.FailureReason).To(BeNil(), "it may still come on")
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachinePoweredOff", "but switched off, for more than 20m0s")
	w.Expect(w.machine("m").Status.FailureReason).To(HaveValue(Equal("UpdateError")))
	w.Expect(w.count("power_on")).To(BeNumerically("<=", 3))
}

func failsTests(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status = status.FailedTesting })
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachineTestsFailed", "its hardware tests failed")
	w.Expect(w.machine("m").Status.FailureReason).To(HaveValue(Equal("UpdateError")))
}

// everyStateEnds freezes a machine for a day and a half in each state that it can have while it belongs to a
// MaasMachine.
func everyStateEnds(t *testing.T, cfg *rest.Config) {
	const free = "ffffff"
	for _, stage := range []string{"acquired", "installing", "provisioned", "leaving"} {
		for _, now := range append(status.All(), 42) {
			t.Run(fmt.Sprintf("%s in %s", stage, now), func(t *testing.T) {
				w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", CPU: 2}, simtest.Machine{ID: free, CPU: 8})
				w.reach(stage, now)
				for _, after := range []time.Duration{0, 15 * time.Second, time.Minute, 11 * time.Minute, time.Minute, 61 * time.Minute,
					time.Minute, time.Minute, 25 * time.Hour, 5 * time.Hour, time.Minute, time.Minute} {
					w.reconcile("m", after)
				}
				w.Expect(len(w.wrote()) - w.count("allocate")).To(BeNumerically("<", 20))
				if end := w.cameTo(free); end == "" {
					t.Errorf("it waits without end, and nobody is told: %+v", w.machine("m").Status.Conditions)
				}
			})
		}
	}
}

// reach brings the MaasMachine m to a stage, then freezes its machine in a state.
func (w *world) reach(stage string, now status.Status) {
	w.t.Helper()
	installed := w.slow(faults.BootHangs)
	if stage == "acquired" {
		w.refuse("machine.deploy", "", http.StatusServiceUnavailable, "busy")
	}
	if stage == "provisioned" || stage == "leaving" {
		installed()
	}
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaaa")))
	installed()
	if stage == "leaving" {
		w.remove("m")
	}
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status, m.PowerState = now, "on" })
	frozen(w, "aaaaaa")
	w.told()
}

// cameTo names the end state of the MaasMachine m. It returns "" while m only waits.
func (w *world) cameTo(free string) string {
	if w.gone("m") {
		return "gone"
	}
	m := w.machine("m")
	ready := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionReady)
	switch {
	case m.Status.FailureReason != nil:
		return "given up"
	case ptr.Deref(m.Spec.SystemID, "") == free:
		return "another machine"
	case !m.DeletionTimestamp.IsZero() && slices.Contains([]string{"MachineReleaseFailed", "MachineReleaseBlocked", "MachineReleaseTimedOut"}, ready.Reason):
		return "a person is asked for"
	case m.DeletionTimestamp.IsZero() && ready.Status == "True":
		return "ready"
	case ready.Reason == "MachineStateUndefined" && m.Status.Initialization.Provisioned != nil:
		return "only the Node can tell"
	}
	return ""
}
