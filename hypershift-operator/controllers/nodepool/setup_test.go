// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/token"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// TestWatches checks the watch of each kind that a pool depends on. The requested pools do not exist, so only the
// watch can have requested them.
func TestWatches(t *testing.T) {
	const namespace = "watched-pools"
	c := fixture.Start(t)
	fixture.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	reader := fixture.NodePool(namespace)
	reader.Name, reader.Spec.Config = "reader", []corev1.LocalObjectReference{{Name: "read"}}
	requests := fixture.Manage(t, namespace, func(mgr ctrl.Manager) error {
		mgr.GetClient().(*testenv.Requests).Listed = []client.Object{reader}
		r := &Reconciler{
			Client: mgr.GetClient(), Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder("nodepool"),
			Releases: fixture.Payloads(), Platforms: fixture.Platforms(nil),
		}
		return r.SetupWithManager(mgr)
	})
	made := func(by string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: by, Annotations: map[string]string{hyperv1.NodePoolAnnotation: namespace + "/" + by}}
	}
	machine := clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
		ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasMachineTemplate", Name: "demo"},
	}}
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"pool": "demo"}}
	machine.Labels = selector.MatchLabels
	pool, cluster := fixture.NodePool(namespace), fixture.HostedCluster(namespace)
	pool.Name = "pool"
	for _, tc := range []struct {
		kind, pool string
		obj        client.Object
	}{
		{"NodePool", "pool", pool},
		{"HostedCluster", "reader", cluster},
		{"ConfigMap", "reader", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "read"}}},
		{"Secret", "secret", &corev1.Secret{ObjectMeta: made("secret")}},
		{"MachineDeployment", "deployment", &clusterv1.MachineDeployment{ObjectMeta: made("deployment"), Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "demo", Selector: selector, Template: machine}}},
		{"MachineSet", "set", &clusterv1.MachineSet{ObjectMeta: made("set"), Spec: clusterv1.MachineSetSpec{
			ClusterName: "demo", Selector: selector, Template: machine}}},
		{"Machine", "machine", &clusterv1.Machine{ObjectMeta: made("machine"), Spec: machine.Spec}},
		{"MachineHealthCheck", "check", &clusterv1.MachineHealthCheck{ObjectMeta: made("check"), Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: "demo", Selector: selector}}},
		{"MaasCluster", "maas-cluster", &infrav1.MaasCluster{ObjectMeta: made("maas-cluster"), Spec: infrav1.MaasClusterSpec{DNSDomain: "maas"}}},
		{"MaasMachine", "maas-machine", &infrav1.MaasMachine{ObjectMeta: made("maas-machine"), Spec: infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1)}}},
		{"MaasMachineTemplate", "template", &infrav1.MaasMachineTemplate{ObjectMeta: made("template"), Spec: infrav1.MaasMachineTemplateSpec{
			Template: infrav1.MaasMachineTemplateResource{Spec: infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1)}}}}},
	} {
		t.Run("When a "+tc.kind+" appears, it should reconcile its pool", func(t *testing.T) {
			requests.ExpectCreated(t, tc.obj, &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tc.pool}})
		})
	}
}

// TestJanitorWatches checks that a Secret is reconciled when it appears.
func TestJanitorWatches(t *testing.T) {
	const namespace = "watched-secrets"
	c := fixture.Start(t)
	fixture.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	requests := fixture.Manage(t, namespace, func(mgr ctrl.Manager) error { return (&token.Janitor{Client: mgr.GetClient()}).SetupWithManager(mgr) })
	t.Run("When a token of a deleted pool appears, it should reconcile the Secret", func(t *testing.T) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: scope.TokenPrefix + "-demo-1",
			Annotations: map[string]string{hyperv1.NodePoolAnnotation: namespace + "/gone"}}}
		requests.ExpectCreated(t, secret, secret)
	})
}
