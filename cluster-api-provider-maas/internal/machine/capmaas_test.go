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
	cfg := testenv.Start(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a virtual machine of CAPMAAS goes, it should be deleted in MAAS":                  vmDeleted,
		"When a virtual machine of CAPMAAS is somebody else's by now, it should be left alone":  vmKept,
		"When the API key may not delete a virtual machine, it should say so and keep it":       vmNeedsAdministrator,
		"When a machine of CAPMAAS goes, it should be released, and its finalizers with it":     metalReleased,
		"When a machine is a VM host still, nothing of it should go":                            hostKept,
		"When only the finalizer of CAPMAAS is left, it should not hold the MaasMachine":        finalizerOnly,
		"When kubeadm is to start the kubelet, the machine should be installed without swap":    withoutSwap,
		"When the API key may not switch swap off, the machine should be installed and told so": swapKept,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// capmaas is a rack whose machine one CAPMAAS deployed: without key and marks, and with all that it leaves on a MaasMachine.
func capmaas(t *testing.T, cfg *rest.Config, user string, lxd bool) *rack {
	t.Helper()
	k := newRack(t, cfg, user)
	k.Change("aaaaa1", func(m *inventory.Machine) {
		m.Status, m.Owner, m.PowerState, m.OSystem, m.Series = status.Deployed, user, "on", "custom", "node"
		if lxd {
			m.PowerType = "lxd"
		}
	})
	k.add("m", infrav1.MaasMachineSpec{
		Image: "custom/node", SystemID: ptr.To("aaaaa1"), ProviderID: ptr.To("maas:///default/aaaaa1"),
		LXD: &infrav1.LXDConfig{Enabled: ptr.To(lxd)},
	})
	m := k.machine("m")
	m.Finalizers = []string{infrav1.MachineFinalizer, evacuation}
	m.Annotations = map[string]string{"maas.spectrocloud.com/vm-name": "vm-m-12345"}
	k.Expect(k.client.Update(t.Context(), m)).To(Succeed())
	k.until("Ready True Ready", "m")
	k.wrote()
	return k
}

func vmDeleted(t *testing.T, cfg *rest.Config) {
	k := capmaas(t, cfg, "admin", true)
	k.leave("m")
	k.Expect(k.Machine("aaaaa1")).To(BeNil(), "a release would leave it on its host for ever")
	k.Expect(k.wrote()).To(Equal([]string{""}), "one DELETE, and no release after which somebody else could get it")
}

func vmKept(t *testing.T, cfg *rest.Config) {
	k := capmaas(t, cfg, "admin", true)
	k.Change("aaaaa1", func(m *inventory.Machine) {
		m.Annotations = map[string]string{"hypershift-machine-uid": "another"}
	})
	k.leave("m")
	k.Expect(k.Machine("aaaaa1")).To(HaveField("Status", status.Deployed))
}

func vmNeedsAdministrator(t *testing.T, cfg *rest.Config) {
	k := capmaas(t, cfg, "alice", true)
	k.remove("m")
	k.passes("m", 3)
	k.expect("m", "Deleting True MAASForbidden", "needs the API key of a MAAS administrator")
	k.Expect(k.Machine("aaaaa1")).To(HaveField("Status", status.Deployed))
}

func metalReleased(t *testing.T, cfg *rest.Config) {
	k := capmaas(t, cfg, "alice", false)
	k.leave("m")
	k.Expect(k.Machine("aaaaa1")).To(And(HaveField("Status", status.Ready), HaveField("Owner", "")))
}

func hostKept(t *testing.T, cfg *rest.Config) {
	k := capmaas(t, cfg, "admin", false)
	k.Expect(k.DB.Update(func() error {
		k.DB.VMHosts.Put(&inventory.VMHost{ID: 7, Name: "lxd-host-one", Type: "lxd", HostSystemID: "aaaaa1"})
		return nil
	})).To(Succeed())
	k.remove("m")
	k.passes("m", 3)
	k.expect("m", "Deleting True MAASInvalidParameter", "The following VM hosts must be removed first: lxd-host-one")
	k.Expect(k.machine("m").Finalizers).To(ConsistOf(infrav1.MachineFinalizer, evacuation))
	k.Expect(k.DB.Update(func() error {
		k.DB.VMHosts.Delete(7)
		return nil
	})).To(Succeed())
	k.Eventually(func() bool {
		k.pass("m")
		return k.gone("m")
	}, "20s", "20ms").Should(BeTrue())
}

func finalizerOnly(t *testing.T, cfg *rest.Config) {
	k := capmaas(t, cfg, "admin", false)
	m := k.machine("m")
	m.Finalizers = []string{evacuation}
	k.Expect(k.client.Update(t.Context(), m)).To(Succeed())
	k.remove("m")
	k.reconcile("m", time.Second)
	k.Expect(k.gone("m")).To(BeTrue())
}

// byKubeadm makes a MaasMachine whose Machine is bootstrapped by kubeadm.
func (k *rack) byKubeadm(name string) {
	k.t.Helper()
	k.add(name, infrav1.MaasMachineSpec{Image: "ubuntu/jammy"})
	owner := &clusterv1.Machine{}
	k.get(name, owner)
	owner.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: name}
	k.Expect(k.client.Update(k.t.Context(), owner)).To(Succeed())
}

func withoutSwap(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "admin")
	k.byKubeadm("kubeadm")
	k.add("ours", infrav1.MaasMachineSpec{Image: "ubuntu/jammy"})
	k.until("Ready True Ready", "kubeadm", "ours")
	k.Expect(k.Machine(*k.machine("kubeadm").Spec.SystemID).SwapSize).To(HaveValue(BeZero()))
	k.Expect(k.Machine(*k.machine("ours").Spec.SystemID).SwapSize).To(BeNil(), "our own kubelet starts with swap, and no call is made for it")
}

func swapKept(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.byKubeadm("kubeadm")
	k.until("Ready True Ready", "kubeadm")
	k.Expect(strings.Join(k.told(), "\n")).To(ContainSubstring("SwapKept"))
}
