// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestBackoff checks that a write of a reconcile does not end the backoff of the same reconcile. Each write triggers
// another reconcile.
func TestBackoff(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	refuses := func(calls int, operation, message string, code int, create func(*testing.T, *rest.Config) *world) func(*testing.T) {
		return func(t *testing.T) { backsOff(create(t, cfg), calls, operation, message, code) }
	}
	virtual := func(t *testing.T, cfg *rest.Config) *world {
		w := newLXD(t, cfg, lxdHost{name: "h1"}, lxdHost{name: "h2"})
		w.addVM("m")
		return w
	}
	metal := func(t *testing.T, cfg *rest.Config) *world {
		w := newRack(t, cfg, "admin")
		w.addPlain("m")
		return w
	}
	t.Run("composes once for each host until the backoff ends, when hosts reject compose",
		refuses(2, "compose", "Unable to compose machine: storage is read-only", http.StatusServiceUnavailable, virtual))
	t.Run("composes once until the backoff ends, when MAAS forbids compose", refuses(1, "compose", "", http.StatusForbidden, virtual))
	t.Run("allocates once until the backoff ends, when MAAS rejects the allocation",
		refuses(1, "allocate", "The region is busy.", http.StatusServiceUnavailable, metal))
	t.Run("allocates once in each zone until the backoff ends, when MAAS has no machine",
		refuses(3, "allocate", "No available machine matches constraints", http.StatusConflict, metal))
}

// backsOff makes MAAS reject an operation, and reconciles as often as the writes of the reconciler trigger it. It
// expects this number of calls before and after the backoff.
func backsOff(w *world, calls int, operation, message string, code int) {
	w.t.Helper()
	accept := w.refuse("*."+operation, "", code, message)
	woken := w.wakes("m", 0)
	w.Expect(w.count(operation)).To(Equal(calls), "of %d reconciles", woken)
	w.Expect(woken).To(BeNumerically("<", 9), "the reconciles end")
	first := w.machine("m").Status.Conditions
	w.Expect(w.reconcile("m", time.Second).RequeueAfter).To(BeNumerically(">", time.Second))
	w.Expect(w.count(operation)).To(Equal(calls))
	w.Expect(w.machine("m").Status.Conditions).To(Equal(first), "the rejection is still reported")
	w.wakes("m", time.Minute)
	w.Expect(w.count(operation)).To(Equal(2*calls), "it is tried again after the backoff")
	accept()
	w.until("Ready True Ready", "m")
}

// wakes reconciles a MaasMachine until it no longer changes, at most 9 times. It returns the number of reconciles.
func (w *world) wakes(name string, after time.Duration) int {
	w.t.Helper()
	for n := 1; n < 9; n++ {
		before := w.machine(name).ResourceVersion
		w.reconcile(name, after)
		if w.machine(name).ResourceVersion == before {
			return n
		}
		after = 0
	}
	return 9
}

// TestReleaseAfterRejectedDeployments checks that the backoff of a deployment does not delay the release.
func TestReleaseAfterRejectedDeployments(t *testing.T) {
	w := newRack(t, testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI), "admin")
	w.addPlain("m")
	w.refuse("machine.deploy", "", http.StatusServiceUnavailable, "busy")
	w.Eventually(func() int { w.pass("m"); return w.count("deploy") }, patience, "20ms").Should(BeNumerically(">", 2))
	w.Expect(w.held()).To(HaveLen(1))
	w.remove("m")
	w.reconcile("m", time.Second)
	w.Expect(w.count("release")).To(Equal(1), "right after the deletion")
	w.Eventually(func() bool { w.pass("m"); return w.gone("m") }, patience, "20ms").Should(BeTrue())
}

// TestSharedCause checks that a deployment that MAAS rejects for all machines is not charged to the machines. They stay
// allocated, do not count as failed, and are deployed when the cause is gone.
func TestSharedCause(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, tc := range map[string]struct {
		code            int
		message, remedy string
	}{
		"no rack controller is connected":   {400, "Deployment operating system ubuntu noble is unavailable.", "no rack controller is connected"},
		"a subnet has no free address":      {503, "No more IPs available in subnet: 10.9.0.0/24.", "the subnet has no free address"},
		"MAAS lacks the image":              {400, `{"distro_series": ["'custom/node' is not a valid distro_series."]}`, "import it"},
		"a proxy reaches no region":         {502, "", "serves no calls now"},
		"MAAS fails for all machines alike": {500, "Internal server error", "MAAS rejected 1 other machine with the same message"},
		"MAAS rejects a parameter of all":   {400, `{"hwe_kernel": ["ga-24.04 is not available."]}`, "MAAS rejected 1 other machine with the same message"},
	} {
		t.Run("keeps the machines and retries when "+name, func(t *testing.T) {
			w := newRack(t, cfg, "admin")
			w.addPlain("a")
			w.addPlain("b")
			accept := w.refuse("machine.deploy", "", tc.code, tc.message)
			for range 60 {
				w.reconcile("a", 30*time.Second)
				w.reconcile("b", time.Second)
			}
			w.Expect(w.held()).To(HaveLen(2))
			for _, m := range []*infrav1.MaasMachine{w.machine("a"), w.machine("b")} {
				w.Expect(m.Annotations).NotTo(HaveKey("infrastructure.cluster.x-k8s.io/failed-machines"))
				w.Expect(m.Status.FailureMessage).To(BeNil())
			}
			w.expect("b", "Ready False "+reasonOf(tc.code, tc.message), tc.remedy)
			w.Expect(w.cluster().Annotations).NotTo(HaveKey(ContainSubstring("failed-machines")))
			w.Expect(w.count("release")).To(BeZero())
			w.Expect(w.count("deploy")).To(BeNumerically("<", 50), "with a backoff")
			accept()
			w.until("Ready True Ready", "a", "b")
		})
	}
}

func reasonOf(code int, message string) string {
	switch {
	case code >= 500:
		return infrav1.MAASUnavailableReason
	case message[:4] == `{"di`:
		return infrav1.ImageNotFoundReason
	}
	return infrav1.MAASInvalidParameterReason
}
