// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// TestUserDataInUse checks which user-data starting machines use, or new machines would use.
func TestUserDataInUse(t *testing.T) {
	pool := fixture.NodePool("clusters")
	set := func(name string, replicas *int32, owner string, change ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
		ms := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: name}}
		ms.Spec.Replicas = replicas
		ms.Spec.Template.Annotations = map[string]string{hyperv1.NodePoolAnnotation: owner}
		ms.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To(name)
		for _, do := range change {
			do(ms)
		}
		return ms
	}
	const own = "clusters/demo"
	c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(
		set("set-of-three", ptr.To[int32](3), own), set("set-of-one", ptr.To[int32](1), own), set("set-of-any", nil, own),
		set("emptied-set", ptr.To[int32](0), own), set("set-of-another-pool", ptr.To[int32](1), "clusters/another"),
		set("set-without", ptr.To[int32](1), own, func(ms *clusterv1.MachineSet) { ms.Spec.Template.Spec.Bootstrap.DataSecretName = nil }),
		set("set-of-another-cluster", ptr.To[int32](1), own, func(ms *clusterv1.MachineSet) { ms.Namespace = "elsewhere" }),
	).Build()
	s := &Secrets{Scope: scope.New(pool), Client: c}
	s.HC = fixture.HostedCluster("clusters")
	for name, node := range map[string]string{"installing": "", "joined": "node-1"} {
		machine := &clusterv1.Machine{}
		machine.Spec.Bootstrap.DataSecretName = ptr.To(name)
		machine.Status.NodeRef.Name = node
		s.Machines = append(s.Machines, machine)
	}
	s.Machines = append(s.Machines, &clusterv1.Machine{})
	got, err := s.userDataInUse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{"set-of-three": true, "set-of-one": true, "set-of-any": true, "installing": true}, got); diff != "" {
		t.Errorf("user-data in use (-want +got):\n%s", diff)
	}
}
