// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/guest"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// emptyGuest connects the reconciler to a hosted cluster without Nodes, and returns a client for that cluster.
func (w *world) emptyGuest(refuse *error) client.Client {
	inside := fakeclient.NewClientBuilder().Build()
	w.reconciler.Nodes = &guest.Nodes{Reader: w.client, Clock: w.clock, Connect: func(*rest.Config) (client.Client, error) { return inside, *refuse }}
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "demo-kubeconfig"}, Data: map[string][]byte{"value": []byte(`{"apiVersion": "v1", "kind": "Config",
		"clusters": [{"name": "c", "cluster": {"server": "https://guest.example.com"}}], "contexts": [{"name": "x", "context": {"cluster": "c"}}], "current-context": "x"}`)}})
	return inside
}

// lostSystem covers a machine whose operating system should replace itself and did not come back. MAAS only knows that
// it is Deployed and on, also after a power cycle. The provider cannot distinguish a hanging machine from an empty
// disk.
func lostSystem(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	var none error
	w.emptyGuest(&none)
	w.add("m", infrav1.MaasMachineSpec{Erase: &infrav1.EraseConfig{Mode: "Quick"},
		Timeouts: infrav1.MachineTimeouts{Boot: &metav1.Duration{Duration: 40 * time.Minute}}})
	w.passes("m", 3)
	w.edit("aaaaaa", func(m *inventory.Machine) { m.PowerState = "off" })
	for range 3 {
		w.reconcile("m", 2*time.Minute)
	}
	w.Expect(w.count("power_on")).To(Equal(1))
	w.Expect(w.Machine("aaaaaa")).To(And(HaveField("Status", status.Deployed), HaveField("PowerState", "on")), "as MAAS has it, nothing is amiss")
	w.reconcile("m", 40*time.Minute)
	w.expect("m", "NodeProviderIDSet False WaitingForNode", "no Node named")
	w.reconcile("m", 15*time.Minute)
	w.expect("m", "NodeProviderIDSet False NodeTimedOut", "within 55m0s of the deployment: check the machine's console")
	w.Expect(w.count("power_on")).To(Equal(1), "it is not switched off and on for ever")

	w.remove("m") // The health check of a pool with autoRepair does the same.
	w.passes("m", 3)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.sent("release").Get("erase")).To(Equal("true"))
	w.Expect(w.Machine("aaaaaa")).To(And(HaveField("Status", status.Ready), HaveField("Owner", BeEmpty())))
}
