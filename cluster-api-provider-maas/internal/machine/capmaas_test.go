// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

const evacuation = "maas.lxd.io/host-evacuation"

func TestFromCAPMAAS(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When the MaasMachine of a CAPMAAS virtual machine is deleted, the virtual machine should be deleted in MAAS":   vmDeleted,
		"When a CAPMAAS virtual machine belongs to another user, it should not be deleted":                              vmKept,
		"When the API key may not delete a virtual machine, it should report that and keep the MaasMachine":             vmNeedsAdministrator,
		"When the MaasMachine of a CAPMAAS machine is deleted, it should release the machine and remove the finalizers": metalReleased,
		"When a deleted machine is still a VM host in MAAS, it should keep the machine and the finalizers":              hostKept,
		"When only the CAPMAAS finalizer is left, it should not block the deletion of the MaasMachine":                  finalizerOnly,
		"When kubeadm starts the kubelet, the machine should be deployed without swap":                                  withoutSwap,
		"When the API key may not turn swap off, the machine should be deployed and an event should report it":          swapKept,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// capmaas returns a fixture whose machine was deployed by CAPMAAS: without a key and annotations, and with everything
// that CAPMAAS leaves on a MaasMachine.
func capmaas(t *testing.T, cfg *rest.Config, user string, lxd bool) *world {
	t.Helper()
	w := newRack(t, cfg, user)
	w.Change("aaaaa1", func(m *inventory.Machine) {
		m.Status, m.Owner, m.PowerState, m.OSystem, m.Series = status.Deployed, user, "on", "custom", "node"
		if lxd {
			m.PowerType = "lxd"
		}
	})
	w.add("m", infrav1.MaasMachineSpec{
		Image: "custom/node", SystemID: ptr.To("aaaaa1"), ProviderID: ptr.To("maas:///default/aaaaa1"),
		LXD: &infrav1.LXDConfig{Enabled: ptr.To(lxd)},
	})
	m := w.machine("m")
	m.Finalizers = []string{infrav1.MachineFinalizer, evacuation}
	m.Annotations = map[string]string{"maas.spectrocloud.com/vm-name": "vm-m-12345"}
	w.Expect(w.client.Update(t.Context(), m)).To(Succeed())
	w.until("Ready True Ready", "m")
	w.wrote()
	return w
}

func vmDeleted(t *testing.T, cfg *rest.Config) {
	w := capmaas(t, cfg, "admin", true)
	w.leave("m")
	w.Expect(w.Machine("aaaaa1")).To(BeNil(), "a release would leave it on its host for ever")
	w.Expect(w.wrote()).To(Equal([]string{""}), "one DELETE, and no release after which somebody else could get it")
}

func vmKept(t *testing.T, cfg *rest.Config) {
	w := capmaas(t, cfg, "admin", true)
	w.Change("aaaaa1", func(m *inventory.Machine) {
		m.Annotations = map[string]string{"hypershift-machine-uid": "another"}
	})
	w.leave("m")
	w.Expect(w.Machine("aaaaa1")).To(HaveField("Status", status.Deployed))
}

func vmNeedsAdministrator(t *testing.T, cfg *rest.Config) {
	w := capmaas(t, cfg, "alice", true)
	w.remove("m")
	w.passes("m", 3)
	w.expect("m", "Deleting True MAASForbidden", "needs the API key of a MAAS administrator")
	w.Expect(w.Machine("aaaaa1")).To(HaveField("Status", status.Deployed))
}

func metalReleased(t *testing.T, cfg *rest.Config) {
	w := capmaas(t, cfg, "alice", false)
	w.leave("m")
	w.Expect(w.Machine("aaaaa1")).To(And(HaveField("Status", status.Ready), HaveField("Owner", "")))
}

func hostKept(t *testing.T, cfg *rest.Config) {
	w := capmaas(t, cfg, "admin", false)
	w.Expect(w.DB.Update(func() error {
		w.DB.VMHosts.Put(&inventory.VMHost{ID: 7, Name: "lxd-host-one", Type: "lxd", HostSystemID: "aaaaa1"})
		return nil
	})).To(Succeed())
	w.remove("m")
	w.passes("m", 3)
	w.expect("m", "Deleting True MAASInvalidParameter", "The following VM hosts must be removed first: lxd-host-one")
	w.Expect(w.machine("m").Finalizers).To(ConsistOf(infrav1.MachineFinalizer, evacuation))
	w.Expect(w.DB.Update(func() error {
		w.DB.VMHosts.Delete(7)
		return nil
	})).To(Succeed())
	w.Eventually(func() bool {
		w.pass("m")
		return w.gone("m")
	}, patience, "20ms").Should(BeTrue())
}

func finalizerOnly(t *testing.T, cfg *rest.Config) {
	w := capmaas(t, cfg, "admin", false)
	m := w.machine("m")
	m.Finalizers = []string{evacuation}
	w.Expect(w.client.Update(t.Context(), m)).To(Succeed())
	w.remove("m")
	w.reconcile("m", time.Second)
	w.Expect(w.gone("m")).To(BeTrue())
}

// byKubeadm creates a MaasMachine whose Machine has a kubeadm bootstrap config.
func (w *world) byKubeadm(name string) {
	w.t.Helper()
	w.add(name, infrav1.MaasMachineSpec{Image: "ubuntu/jammy"})
	owner := &clusterv1.Machine{}
	w.get(name, owner)
	owner.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: name}
	w.Expect(w.client.Update(w.t.Context(), owner)).To(Succeed())
}

func withoutSwap(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.byKubeadm("kubeadm")
	w.add("ours", infrav1.MaasMachineSpec{Image: "ubuntu/jammy"})
	w.until("Ready True Ready", "kubeadm", "ours")
	w.Expect(w.Machine(*w.machine("kubeadm").Spec.SystemID).SwapSize).To(HaveValue(BeZero()))
	w.Expect(w.Machine(*w.machine("ours").Spec.SystemID).SwapSize).To(BeNil(), "our own kubelet starts with swap, and no call is made for it")
}

func swapKept(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.byKubeadm("kubeadm")
	w.until("Ready True Ready", "kubeadm")
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("SwapKept "))
}
