// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// allocatedAnew covers a race that killing the provider revealed. Between the allocation and the annotations, a machine
// seems to have no owner. A MaasMachine that had it before must not adopt it.
func allocatedAnew(t *testing.T, cfg *rest.Config) {
	for _, deleted := range []bool{true, false} {
		w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
		w.slow(faults.BootHangs)
		w.add("m", infrav1.MaasMachineSpec{})
		w.reconcile("m", 0)
		w.edit("aaaaaa", func(m *inventory.Machine) {
			m.Status, m.Owner, m.AgentName, m.Annotations = status.Allocated, "provider", maas.AllocationKey("another"), nil
		})
		if deleted {
			w.remove("m")
		}
		w.passes("m", 2)
		w.Expect(w.gone("m")).To(Equal(deleted))
		if !deleted {
			w.expect("m", "Ready False MachineTakenOver", "allocated again")
		}
		got := w.Machine("aaaaaa")
		w.Expect(got.Status).To(Equal(status.Allocated))
		w.Expect(got.AgentName).To(Equal(maas.AllocationKey("another")))
		w.Expect(got.Annotations).To(BeEmpty())
	}
}

// setAside covers a second race that killing the provider revealed. A failed machine is not Ready when the list is
// read, but Ready when MAAS picks the cheapest machine.
func setAside(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", CPU: 2}, simtest.Machine{ID: "bbbbbb", CPU: 8})
	simtest.FailDeployments(t, w.Simulator, "aaaaaa", 9)
	w.slow(faults.SlowRelease)
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 2)
	w.once("allocate", func() {
		w.edit("aaaaaa", func(m *inventory.Machine) { m.Status, m.Owner = status.Ready, "" })
	})
	w.add("other", infrav1.MaasMachineSpec{})
	w.passes("other", 2)
	w.Expect(w.machine("other").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
}

func otherUser(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Owner, m.AgentName, m.Annotations = "bob", "", nil })
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachineTakenOver", "belongs to another MAAS user")
	w.Expect(w.machine("m").Status.FailureReason).NotTo(BeNil())
	w.remove("m")
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.Machine("aaaaaa").Owner).To(Equal("bob"))
}

// moved covers clusterctl move and a restored backup, which change the UID of the object.
func moved(t *testing.T, cfg *rest.Config) {
	old := "11111111-2222-3333-4444-555555555555"
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", Status: status.Deployed, Owner: "provider", Power: "on", AgentName: maas.AllocationKey(old),
		Annotations: map[string]string{maas.AnnotationMachineUID: old}})
	w.add("m", infrav1.MaasMachineSpec{ProviderID: ptr.To("maas:///az7/aaaaaa"), SystemID: ptr.To("aaaaaa")})
	m := w.machine("m")
	m.Annotations = map[string]string{machine.UIDAnnotation: old}
	w.Expect(w.client.Update(t.Context(), m)).To(Succeed())
	w.passes("m", 2)
	w.expect("m", "Ready True Ready", "")
	w.Expect(w.machine("m").Spec.ProviderID).To(HaveValue(Equal("maas:///az7/aaaaaa")), "it is never calculated anew")
	w.remove("m")
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.held()).To(BeEmpty())
}

// foreign covers a machine that the upstream provider allocated: it has no allocation key and no ownership
// annotations.
func foreign(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", Status: status.Deployed, Owner: "provider", Power: "on"})
	w.add("m", infrav1.MaasMachineSpec{ProviderID: ptr.To("maas:///default/aaaaaa")})
	w.passes("m", 2)
	w.expect("m", "Ready True Ready", "")
	w.Expect(w.Machine("aaaaaa").Annotations).To(HaveKeyWithValue(maas.AnnotationMachineUID, string(w.machine("m").UID)))
	w.remove("m")
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.held()).To(BeEmpty())
}

func maintenance(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	for _, now := range []status.Status{status.RescueMode, status.Testing} {
		w.edit("aaaaaa", func(m *inventory.Machine) { m.Status = now })
		w.reconcile("m", 3*time.Minute)
		w.expect("m", "Ready False MachineInMaintenance", "it is under maintenance in MAAS")
		w.Expect(w.machine("m").Status.FailureReason).To(BeNil())
	}
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status = status.Deployed })
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready True Ready", "")
}

func locked(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Locked = true })
	w.remove("m")
	w.passes("m", 2)
	w.expect("m", "Deleting True MAASForbidden", "locked")
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Locked = false })
	w.passes("m", 3)
	w.Expect(w.gone("m")).To(BeTrue())
}

func erases(t *testing.T, cfg *rest.Config) {
	for mode, want := range map[string][]string{"Full": {"erase"}, "Quick": {"erase", "quick_erase"}, "Secure": {"erase", "secure_erase"}, "None": nil} {
		w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
		w.add("m", infrav1.MaasMachineSpec{Erase: &infrav1.EraseConfig{Mode: mode}})
		w.passes("m", 3)
		w.remove("m")
		w.passes("m", 2)
		var got []string
		for _, param := range []string{"erase", "quick_erase", "secure_erase"} {
			if w.sent("release").Get(param) == "true" {
				got = append(got, param)
			}
		}
		w.Expect(got).To(Equal(want), mode)
	}
}

func joins(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", Hostname: "Mole"})
	var away error
	inside := w.emptyGuest(&away)
	w.add("m", infrav1.MaasMachineSpec{})
	away = errors.New("connection refused")
	w.passes("m", 3)
	w.expect("m", "Ready True Ready", "")
	w.expect("m", "NodeProviderIDSet False NodeProviderUpdateFailed", "connection refused")
	away = nil
	w.passes("m", 1)
	w.expect("m", "NodeProviderIDSet False WaitingForNode", "no Node named mole")
	w.reconcile("m", 36*time.Minute)
	w.expect("m", "NodeProviderIDSet False NodeTimedOut", "has registered within 35m0s of the deployment: check the machine's console")
	w.Expect(inside.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mole"}})).To(Succeed())
	w.passes("m", 1)
	w.expect("m", "NodeProviderIDSet True NodeFound", "")
	node := &corev1.Node{}
	w.Expect(inside.Get(t.Context(), client.ObjectKey{Name: "mole"}, node)).To(Succeed())
	w.Expect(node.Spec.ProviderID).To(Equal("maas:///default/aaaaaa"))

	owner := &clusterv1.Machine{}
	w.get("m", owner)
	owner.Status.NodeRef = clusterv1.MachineNodeReference{Name: "mole"}
	w.Expect(w.client.Status().Update(t.Context(), owner)).To(Succeed())
	away = errors.New("connection refused")
	w.passes("m", 2)
	w.expect("m", "NodeProviderIDSet True NodeFound", "")
}
