// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestWatches checks that each kind that a controller of the provider watches triggers a reconcile. The reconciled
// objects do not exist, so only the watch can trigger it.
func TestWatches(t *testing.T) {
	const namespace = "default"
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	made := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"}}
	}
	infra := func(kind, name string) clusterv1.ContractVersionedObjectReference {
		return clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: kind, Name: name}
	}
	requests := testenv.Manage(t, cfg, newScheme(), func(mgr ctrl.Manager) error {
		mgr.GetClient().(*testenv.Requests).Listed = []client.Object{&infrav1.MaasMachine{ObjectMeta: made("of-the-cluster")}}
		identities := identity.NewResolver(identity.Options{Reader: mgr.GetAPIReader(), Clock: clock.RealClock{}})
		return addControllers(t.Context(), mgr, &options{machineConcurrency: 1}, identities)
	})
	waiting := func(name string) *infrav1.MaasMachine {
		return &infrav1.MaasMachine{ObjectMeta: made(name), Spec: infrav1.MaasMachineSpec{Image: "ubuntu/noble", MinCPU: ptr.To(1), MinMemory: ptr.To(1)}}
	}
	owner := &clusterv1.Cluster{ObjectMeta: made("demo"), Spec: clusterv1.ClusterSpec{InfrastructureRef: infra("MaasCluster", "absent")}}
	controlPlane := waiting("control-plane")
	controlPlane.Labels[clusterv1.MachineControlPlaneLabel] = ""
	machine := &clusterv1.Machine{ObjectMeta: made("machine"), Spec: clusterv1.MachineSpec{
		ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")}, InfrastructureRef: infra("MaasMachine", "of-the-machine")}}
	cluster := &infrav1.MaasCluster{ObjectMeta: made("absent")}
	of := func(name string) *infrav1.MaasMachine { return &infrav1.MaasMachine{ObjectMeta: made(name)} }

	t.Run("When a MaasMachine appears, it should be reconciled", func(t *testing.T) {
		requests.ExpectCreated(t, waiting("worker"), of("worker"))
	})
	t.Run("When a Machine appears, its MaasMachine should be reconciled", func(t *testing.T) {
		requests.ExpectCreated(t, machine, of("of-the-machine"))
	})
	t.Run("When a MaasCluster appears, it should be reconciled", func(t *testing.T) {
		present := &infrav1.MaasCluster{ObjectMeta: made("present"), Spec: infrav1.MaasClusterSpec{DNSDomain: "maas"}}
		requests.ExpectCreated(t, present, present)
	})
	t.Run("When a MaasMachineTemplate appears, it should be reconciled", func(t *testing.T) {
		template := &infrav1.MaasMachineTemplate{ObjectMeta: made("template"),
			Spec: infrav1.MaasMachineTemplateSpec{Template: infrav1.MaasMachineTemplateResource{Spec: waiting("").Spec}}}
		requests.ExpectCreated(t, template, template)
	})
	if err := requests.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	expectTouched := func(t *testing.T, asked client.Object) {
		t.Helper()
		requests.Expect(t, asked, client.ObjectKeyFromObject(asked), func() error {
			patch := client.MergeFrom(owner.DeepCopy())
			owner.Annotations = map[string]string{"touched": t.Name() + owner.ResourceVersion}
			return requests.Patch(t.Context(), owner, patch)
		})
	}
	t.Run("When a Cluster changes, its MaasMachines should be reconciled", func(t *testing.T) { expectTouched(t, of("of-the-cluster")) })
	t.Run("When a Cluster changes, its MaasCluster should be reconciled", func(t *testing.T) { expectTouched(t, cluster) })
	t.Run("When a control plane machine appears, its MaasCluster should be reconciled", func(t *testing.T) {
		expectTouched(t, cluster)
		requests.ExpectCreated(t, controlPlane, cluster)
	})
}
