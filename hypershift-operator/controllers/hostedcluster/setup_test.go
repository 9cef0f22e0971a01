// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// TestWatches checks the watch of each kind that a cluster depends on. The requested clusters do not exist, so only
// the watch can cause a request.
func TestWatches(t *testing.T) {
	const namespace = "watched-clusters"
	c := fixture.Start(t)
	fixture.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	requests := fixture.Manage(t, namespace, func(mgr ctrl.Manager) error {
		r := &Reconciler{
			Client: mgr.GetClient(), LiveReader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder("hostedcluster"),
			Releases: fixture.Payloads(), Platforms: fixture.Platforms(nil),
		}
		return r.SetupWithManager(mgr)
	})
	made := func(by string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: by, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: namespace + "/" + by}}
	}
	global := func(by string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "watched-" + by, Labels: map[string]string{cluster.OwnerNamespace: namespace, cluster.OwnerName: by}}
	}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	labels := map[string]string{"app": "demo"}
	pods := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "demo", Image: "registry.example/demo"}}}}
	hosted := made("hosted")
	hosted.Namespace, hosted.Name = "", "watched-hosted"
	cluster, pool := fixture.HostedCluster(namespace), fixture.NodePool(namespace)
	cluster.Name, pool.Spec.ClusterName = "cluster", "pool"
	for _, tc := range []struct {
		kind, cluster string
		obj           client.Object
	}{
		{"HostedCluster", "cluster", cluster},
		{"Namespace", "hosted", &corev1.Namespace{ObjectMeta: hosted}},
		{"Deployment", "deployment", &appsv1.Deployment{ObjectMeta: made("deployment"), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pods}}},
		{"ServiceAccount", "account", &corev1.ServiceAccount{ObjectMeta: made("account")}},
		{"Service", "service", &corev1.Service{ObjectMeta: made("service"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}},
		{"Role", "role", &rbacv1.Role{ObjectMeta: made("role")}},
		{"RoleBinding", "role-binding", &rbacv1.RoleBinding{ObjectMeta: made("role-binding"), RoleRef: role}},
		{"NetworkPolicy", "policy", &networkingv1.NetworkPolicy{ObjectMeta: made("policy")}},
		{"HostedControlPlane", "control-plane", &hyperv1.HostedControlPlane{ObjectMeta: made("control-plane"), Spec: controlPlaneSpec(t, cluster)}},
		{"Cluster", "capi-cluster", &clusterv1.Cluster{ObjectMeta: made("capi-cluster"), Spec: clusterv1.ClusterSpec{
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasCluster", Name: "demo"}}}},
		{"ClusterRole", "cluster-role", &rbacv1.ClusterRole{ObjectMeta: global("cluster-role")}},
		{"ClusterRoleBinding", "cluster-binding", &rbacv1.ClusterRoleBinding{ObjectMeta: global("cluster-binding"), RoleRef: role}},
		{"Secret", "secret", &corev1.Secret{ObjectMeta: made("secret")}},
		{"ConfigMap", "config-map", &corev1.ConfigMap{ObjectMeta: made("config-map")}},
		{"NodePool", "pool", pool},
		{"MaasCluster", "maas-cluster", &infrav1.MaasCluster{ObjectMeta: made("maas-cluster"), Spec: infrav1.MaasClusterSpec{DNSDomain: "maas"}}},
		{"MaasMachine", "maas-machine", &infrav1.MaasMachine{ObjectMeta: made("maas-machine"), Spec: infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1)}}},
		{"MaasMachineTemplate", "template", &infrav1.MaasMachineTemplate{ObjectMeta: made("template"), Spec: infrav1.MaasMachineTemplateSpec{
			Template: infrav1.MaasMachineTemplateResource{Spec: infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1)}}}}},
	} {
		t.Run("When a "+tc.kind+" appears, it should reconcile its cluster", func(t *testing.T) {
			requests.ExpectCreated(t, tc.obj, &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tc.cluster}})
		})
	}
}
