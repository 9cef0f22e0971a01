package machine_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/maas/maastest"
)

func takenAway(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"}, &maastest.Machine{ID: "bbbbbb"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status, m.Owner, m.AgentName, m.Annotations = maastest.Ready, "", "", nil })
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachineTerminatedReason", "it was released from outside of Cluster API")
	w.Expect(w.machine("m").Status.FailureReason).To(HaveValue(Equal("UpdateError")))
	w.Expect(w.machine("m").Status.Initialization.Provisioned).To(HaveValue(BeTrue()), "the contract: it never flips back")

	w.add("next", infrav1.MaasMachineSpec{})
	w.passes("next", 3)
	w.Expect(w.machine("next").Spec.SystemID).To(HaveValue(Equal("bbbbbb")), "the first one's Node is still there")
	w.add("third", infrav1.MaasMachineSpec{})
	w.passes("third", 2)
	w.expect("third", "Ready False NoCapacity", "another MaasMachine of the namespace still names them")
	w.remove("third")
	w.remove("next")
	w.passes("third", 1)
	w.passes("next", 3)
	w.Expect(w.gone("next")).To(BeTrue())

	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status, m.Owner, m.Power = maastest.Deployed, "provider", "on" })
	w.remove("m")
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.maas.Get("aaaaaa").Status).To(Equal(maastest.Deployed), "somebody else's by now")

	w.add("deleted", infrav1.MaasMachineSpec{})
	w.passes("deleted", 3)
	w.maas.Delete("bbbbbb")
	w.reconcile("deleted", 3*time.Minute)
	w.expect("deleted", "MachineDeployed Unknown MachineNotFound", "it was deleted there")
	w.remove("deleted")
	w.passes("deleted", 1)
	w.Expect(w.gone("deleted")).To(BeTrue(), "a 404 is success")
}

func brokenStays(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) {
		m.Status, m.Owner, m.AgentName, m.Description = maastest.Broken, "", "", "fan dead"
	})
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachineBroken", "fan dead")
	w.remove("m")
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.maas.Get("aaaaaa").Status).To(Equal(maastest.Broken))
}

func powersOn(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.maas.Intercept = func(c maastest.Call, rw http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
		if c.Op == "power_on" {
			_, _ = rw.Write([]byte("null"))
			return true, nil
		}
		return false, nil
	}
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Power = "off" })
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachinePoweredOff", "switched off")
	w.passes("m", 4)
	w.Expect(w.maas.Calls(false)["POST machines/* power_on"]).To(Equal(1))
	w.reconcile("m", 6*time.Minute)
	w.Expect(w.maas.Calls(false)["POST machines/* power_on"]).To(Equal(2))
	for _, power := range []string{"unknown", "error"} {
		w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Power = power })
		w.reconcile("m", 3*time.Minute)
		w.expect("m", "Ready True Ready", "")
	}
}

func deletions(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.credentials("consumerkey:tokenkey01:wrongsecret")
	w.remove("m")
	w.passes("m", 3)
	w.Expect(w.gone("m")).To(BeFalse(), "a bad credential never removes a finalizer")
	w.expect("m", "Deleting True MAASUnauthorized", "valid API key")

	w.add("untouched", infrav1.MaasMachineSpec{})
	w.passes("untouched", 1)
	w.remove("untouched")
	w.passes("untouched", 1)
	w.Expect(w.gone("untouched")).To(BeTrue(), "MAAS was never asked for a machine")

	w.credentials(w.maas.APIKey)
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status = maastest.RescueMode })
	w.passes("m", 1)
	w.expect("m", "Deleting True MachineReleaseBlocked", "end it in MAAS")
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status = maastest.ReleasingFailed })
	w.maas.Intercept = func(c maastest.Call, rw http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
		return false, func(http.ResponseWriter) bool {
			if c.Op == "release" {
				w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status = maastest.ReleasingFailed })
			}
			return false
		}
	}
	w.passes("m", 2)
	w.expect("m", "Deleting True MachineReleaseFailed", "may need a person")
	w.maas.Intercept = nil
	w.reconcile("m", 6*time.Minute)
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.maas.Held()).To(BeEmpty())
}

func deletedInDoubt(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.maas.Intercept = func(c maastest.Call, rw http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
		if c.Op == "allocate" {
			rw.WriteHeader(http.StatusGatewayTimeout)
			return true, nil
		}
		return false, nil
	}
	w.reconcile("m", 0)
	key := maas.AllocationKey(string(w.machine("m").UID))
	w.remove("m")
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeFalse())
	w.expect("m", "Deleting True AllocationUncertain", "whether one turns up")
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status, m.Owner, m.AgentName = maastest.Allocated, "provider", key })
	w.passes("m", 1)
	w.Expect(w.maas.Held()).To(BeEmpty())
	w.reconcile("m", time.Minute)
	w.Expect(w.gone("m")).To(BeTrue())
}

func pauses(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	cluster := &clusterv1.Cluster{}
	w.get("demo", cluster)
	cluster.Spec.Paused = ptr.To(true)
	w.Expect(w.client.Update(t.Context(), cluster)).To(Succeed())
	w.passes("m", 2)
	w.expect("m", "Paused True Paused", "")
	w.Expect(w.maas.Calls(false)).To(BeEmpty())
	cluster.Spec.Paused = ptr.To(false)
	w.Expect(w.client.Update(t.Context(), cluster)).To(Succeed())
	w.passes("m", 2)
	w.expect("m", "Paused False NotPaused", "")
	w.expect("m", "Ready True Ready", "")
}
