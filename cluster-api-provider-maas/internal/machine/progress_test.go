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
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/maas/maastest"
	"github.com/openshift/hypershift/support/testenv"
)

func TestProgress(t *testing.T) {
	cfg := testenv.Start(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a failed machine is never released, it should take another one and go on releasing":   deadMachine,
		"When the power of a failed machine does not answer, it should take another one":            deadPower,
		"When MAAS refuses the deployment, it should try some machines and then say MAAS's words":   refusedDeployment,
		"When a conflict stands, it should not be a hot loop":                                       standingConflict,
		"When a deployed machine can't be switched on, it should be given up":                       staysOff,
		"When a deployed machine fails its hardware tests, it should be terminal":                   failsTests,
		"When MAAS stays in any state, the MaasMachine should come to an end that a person can see": everyStateEnds,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// frozen has MAAS take every call about a machine, and leave it in the state that it is in.
func frozen(w *world, id string) {
	status := w.maas.Get(id).Status
	w.maas.Intercept = func(c maastest.Call, _ http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
		return false, func(http.ResponseWriter) bool {
			w.maas.Edit(id, func(m *maastest.Machine) { m.Status, m.Owner = status, "provider" })
			return false
		}
	}
}

func deadMachine(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa", CPU: 2, Hostname: "dead", FailDeploys: 1}, &maastest.Machine{ID: "bbbbbb", CPU: 8})
	w.maas.ReleaseTime = 24 * time.Hour
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.expect("m", "Ready False MachineDeployFailed", "before another machine is tried, machine dead (aaaaaa) is Releasing")
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status = maastest.ReleasingFailed })
	frozen(w, "aaaaaa")
	w.passes("m", 4)
	w.restart()
	w.passes("m", 2)
	w.expect("m", "Ready True Ready", "")
	w.reconcile("m", 3*time.Minute)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.expect("m", "FailedMachinesReleased False MachineReleaseFailed", "machine dead (aaaaaa) is Releasing failed: MAAS could not take it back")
	for range 24 {
		w.reconcile("m", time.Hour)
	}
	w.Expect(strings.Join(w.told(), "\n")).NotTo(ContainSubstring("MachineReleased"), "MAAS does not have it back")
	w.Expect(w.maas.Calls(true)["POST machines/* release"]).To(BeNumerically("<", 30), "it is asked again, and seldom")

	w.remove("m")
	w.maas.ReleaseTime = 0
	w.passes("m", 5)
	w.expect("m", "Deleting True MachineReleaseFailed", "dead (aaaaaa)") // No MaasCluster looks after it.
	w.Expect(w.maas.Get("bbbbbb").Status).To(Equal(maastest.Ready), "the stuck one does not keep the other")
	w.maas.Intercept = nil
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status, m.Owner, m.AgentName = maastest.Ready, "", "" })
	w.reconcile("m", 3*time.Minute)
	w.Expect(w.gone("m")).To(BeTrue(), "nothing of it is left in MAAS")
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("MachineReleased machine dead (aaaaaa) is Ready"))
}

func deadPower(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa", CPU: 2, Hostname: "dead", FailDeploys: 9}, &maastest.Machine{ID: "bbbbbb", CPU: 8})
	w.maas.Intercept = func(c maastest.Call, rw http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
		if c.Op == "release" && strings.Contains(c.Path, "aaaaaa") {
			http.Error(rw, "the BMC does not answer", http.StatusServiceUnavailable)
			return true, nil
		}
		return false, nil
	}
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 8)
	w.expect("m", "Ready True Ready", "")
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.expect("m", "FailedMachinesReleased False MAASUnavailable", "the BMC does not answer")
	for range 100 {
		w.reconcile("m", 15*time.Minute)
	}
	w.Expect(w.maas.Calls(true)["POST machines/* release"]).To(BeNumerically("<", 120))
	w.maas.Intercept = nil
	w.passes("m", 20)
	w.expect("m", "FailedMachinesReleased True MachineReleased", "")
	w.Expect(w.maas.Held()).To(HaveLen(1))
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("MachineReleased machine dead (aaaaaa) is Ready"))
}

func refusedDeployment(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"}, &maastest.Machine{ID: "bbbbbb"}, &maastest.Machine{ID: "cccccc"}, &maastest.Machine{ID: "dddddd"})
	w.maas.Intercept = func(c maastest.Call, rw http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
		if c.Op == "deploy" {
			http.Error(rw, `{"hwe_kernel": ["hwe-9 has no kernels available."]}`, http.StatusBadRequest)
			return true, nil
		}
		return false, nil
	}
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 2)
	w.expect("m", "Ready False MAASInvalidParameter", "hwe-9 has no kernels available")
	for range 25 * 60 {
		w.reconcile("m", time.Minute)
	}
	w.expect("m", "Ready False DeployAttemptsExhausted", "hwe-9 has no kernels available")
	w.Expect(w.machine("m").Status.FailureReason).To(HaveValue(Equal("CreateError")))
	w.Expect(w.maas.Calls(true)["POST machines/* deploy"]).To(BeNumerically("<", 20))
	w.restart()
	w.passes("m", 20)
	w.Expect(w.maas.Calls(true)).NotTo(HaveKey("POST machines/* deploy"), "that is final")
	w.Expect(w.maas.Held()).To(HaveLen(1))
}

func standingConflict(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa", CPU: 2}, &maastest.Machine{ID: "bbbbbb", CPU: 8})
	w.maas.Intercept = func(c maastest.Call, rw http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
		if c.Op == "deploy" && strings.Contains(c.Path, "aaaaaa") {
			http.Error(rw, "Invalid transition: Allocated -> Deploying.", http.StatusConflict)
			return true, nil
		}
		return false, nil
	}
	w.add("m", infrav1.MaasMachineSpec{})
	for range 120 {
		w.reconcile("m", time.Second)
	}
	w.expect("m", "Ready False MAASError", "Invalid transition")
	w.Expect(w.maas.Calls(false)["POST machines/* deploy"]).To(BeNumerically("<=", 4))
	for range 15 {
		w.reconcile("m", time.Minute)
	}
	w.expect("m", "Ready True Ready", "")
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
}

func staysOff(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.expect("m", "Ready True Ready", "")
	w.maas.Intercept = func(c maastest.Call, rw http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
		if c.Op == "power_on" {
			http.Error(rw, "the BMC does not answer", http.StatusServiceUnavailable)
			return true, nil
		}
		return false, nil
	}
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Power = "off" })
	w.reconcile("m", 3*time.Hour)
	for range 9 {
		w.reconcile("m", 2*time.Minute)
	}
	w.Expect(w.machine("m").Status.FailureReason).To(BeNil(), "it may still come on")
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachinePoweredOff", "but switched off, for more than 20m0s")
	w.Expect(w.machine("m").Status.FailureReason).To(HaveValue(Equal("UpdateError")))
	w.Expect(w.maas.Calls(false)["POST machines/* power_on"]).To(BeNumerically("<=", 3))
}

func failsTests(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status = maastest.FailedTesting })
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachineTestsFailed", "its hardware tests failed")
	w.Expect(w.machine("m").Status.FailureReason).To(HaveValue(Equal("UpdateError")))
}

// everyStateEnds freezes a machine in each state in which it can be while a MaasMachine has it, for a day and a half.
func everyStateEnds(t *testing.T, cfg *rest.Config) {
	const free = "ffffff"
	for _, stage := range []string{"acquired", "installing", "provisioned", "leaving"} {
		for _, status := range append(maas.Statuses(), 42) {
			t.Run(fmt.Sprintf("%s in %s", stage, status), func(t *testing.T) {
				w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa", CPU: 2}, &maastest.Machine{ID: free, CPU: 8})
				w.reach(stage, int(status))
				for _, after := range []time.Duration{0, 15 * time.Second, time.Minute, 11 * time.Minute, time.Minute, 61 * time.Minute,
					time.Minute, time.Minute, 25 * time.Hour, 5 * time.Hour, time.Minute, time.Minute} {
					w.reconcile("m", after)
				}
				writes := 0
				for call, n := range w.maas.Calls(true) {
					if strings.HasPrefix(call, "POST machines/*") {
						writes += n
					}
				}
				w.Expect(writes).To(BeNumerically("<", 20))
				if end := w.end(free); end == "" {
					t.Errorf("it waits without end, and nobody is told: %+v", w.machine("m").Status.Conditions)
				}
			})
		}
	}
}

// reach brings the MaasMachine m to a stage, and freezes its machine in a state.
func (w *world) reach(stage string, status int) {
	w.t.Helper()
	w.maas.DeployTime = 24 * 365 * time.Hour
	if stage == "acquired" {
		w.maas.Intercept = func(c maastest.Call, rw http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
			if c.Op == "deploy" {
				http.Error(rw, "busy", http.StatusServiceUnavailable)
				return true, nil
			}
			return false, nil
		}
	}
	if stage == "provisioned" || stage == "leaving" {
		w.maas.DeployTime = 0
	}
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("aaaaaa")))
	w.maas.DeployTime = 0
	if stage == "leaving" {
		w.remove("m")
	}
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status, m.Power = status, "on" })
	frozen(w, "aaaaaa")
	w.told()
}

// end names the end to which the MaasMachine m came; none while it only waits.
func (w *world) end(free string) string {
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
