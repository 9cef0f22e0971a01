// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/nodepool"
)

var _ nodepool.Placer = &NodePool{}

func TestPlace(t *testing.T) {
	for _, tt := range []struct {
		name, ref string
		status    infrav1.MaasMachineStatus
		want      string
	}{
		{"When the machine is a VM, it should return the host name and the LXD host", "a",
			infrav1.MaasMachineStatus{Hostname: ptr.To("calm-ant"), LXDHost: "lxd-1", MachineState: ptr.To("Deploying")}, "is calm-ant on lxd-1 (Deploying)"},
		{"When the machine is bare metal, it should return the host name", "a", infrav1.MaasMachineStatus{Hostname: ptr.To("calm-ant"), MachineState: ptr.To("Deployed")}, "is calm-ant (Deployed)"},
		{"When no machine is allocated yet, it should return nothing", "a", infrav1.MaasMachineStatus{}, ""},
		{"When the MaasMachine is deleted, it should return nothing", "gone", infrav1.MaasMachineStatus{}, ""},
		{"When the Machine has no MaasMachine yet, it should return nothing", "", infrav1.MaasMachineStatus{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			got := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "a"}, Status: tt.status}
			c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(got).Build()
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "a"}}
			machine.Spec.InfrastructureRef.Name = tt.ref
			g.Expect((&NodePool{}).Place(t.Context(), c, machine)).To(Equal(tt.want))
		})
	}
}
