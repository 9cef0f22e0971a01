// SPDX-License-Identifier: Apache-2.0

package address

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/testenv"
)

// TestRefusals checks that after a failed read the controller does not report that all nodes use the address. The
// previous address would be dropped too early.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.node("old", former)
	w.node("there", next)
	others := w.daemonSet("192.0.2.10")
	others.Name, others.Labels = "of-the-user", nil
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "young"}}
	machine.Spec.ClusterName, machine.Spec.Bootstrap.DataSecretName = "demo", new(string)
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "MaasMachine", Name: "young"}
	w.create(w.daemonSet("192.0.2.10"), others, machine)
	w.serves("192.0.2.99", "192.0.2.10")

	server := testenv.NewGrudging(w.client)
	w.r.Guest, w.r.Management = server, server
	server.Exhaust(t, func() (ctrl.Result, error) {
		w.refresh()
		before := w.hcp.Status.AddressUse
		result, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
		w.refresh()
		if diff := cmp.Diff(before, w.hcp.Status.AddressUse); err != nil && diff != "" {
			t.Errorf("a pass that failed told who goes by the address (-before +after):\n%s", diff)
		}
		return result, err
	}, func() any { return nil })
	w.Expect(w.pass()).To(Equal("1 come, 3 not: node old (https://192.0.2.10:30443 192.0.2.10), DaemonSet kube-proxy (192.0.2.10:30443), machine young (being installed)"))
	w.Expect(w.asked("old")).To(Equal(next))
	w.Expect(w.asked("there")).To(BeEmpty(), "it is there")
}
