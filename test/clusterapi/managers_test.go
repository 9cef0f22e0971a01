// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
)

// current is the manager of this project's own payloads.
const current = "../../bin/images/cluster-api"

// binaries returns the managers, oldest first: those that `make test-cluster-api` lists, or the current one.
func binaries(t *testing.T) []string {
	t.Helper()
	if list := os.Getenv("CLUSTER_API_MANAGERS"); list != "" {
		return strings.Split(list, ":")
	}
	if _, err := os.Stat(current); err != nil {
		t.Skip("there is no bin/images/cluster-api: `make environment` builds it")
	}
	return []string{current}
}

// versionOf returns the name of the folder that a manager is built into.
func versionOf(binary string) string { return filepath.Base(filepath.Dir(binary)) }

// hostedCluster creates the objects that the operator creates for a HostedCluster with one pool, as far as Cluster API
// reads them.
func (w *world) hostedCluster(edit ...func(*clusterv1.MachineDeployment)) {
	raw, err := os.ReadFile(w.kubeconfig)
	w.Expect(err).NotTo(HaveOccurred())
	infra := &infrav1.MaasCluster{ObjectMeta: w.meta(cluster)}
	infra.Spec.DNSDomain = "maas"
	infra.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: "api.example", Port: 6443}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	w.controlPlane()
	w.create(
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}},
			Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": raw},
		},
		infra,
		&clusterv1.Cluster{ObjectMeta: w.meta(cluster), Spec: clusterv1.ClusterSpec{
			InfrastructureRef:    infrastructure("MaasCluster", cluster),
			ControlPlaneRef:      clusterv1.ContractVersionedObjectReference{APIGroup: hyperv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: cluster},
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "api.example", Port: 6443},
		}},
	)
	w.template(cluster, image)
	w.pool(cluster, edit...)
	infra.Status.Ready, infra.Status.Initialization.Provisioned = true, ptr.To(true)
	w.Expect(w.client.Status().Update(w.t.Context(), infra)).To(Succeed())
}

func infrastructure(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: kind, Name: name}
}

// template creates a MaasMachineTemplate with the image.
func (w *world) template(name, image string) {
	template := &infrav1.MaasMachineTemplate{ObjectMeta: w.meta(name)}
	template.Spec.Template.Spec.Image = image
	template.Spec.Template.Spec.MinCPU, template.Spec.Template.Spec.MinMemory = ptr.To(2), ptr.To(4096)
	w.create(template)
}

// pool creates a MachineDeployment of the first template. By default, it creates new machines before it deletes old
// ones.
func (w *world) pool(name string, edit ...func(*clusterv1.MachineDeployment)) {
	labels := map[string]string{"pool": name}
	deployment := &clusterv1.MachineDeployment{ObjectMeta: w.meta(name), Spec: clusterv1.MachineDeploymentSpec{
		ClusterName: cluster, Replicas: ptr.To[int32](2), Selector: metav1.LabelSelector{MatchLabels: labels},
		Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
			Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
				MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			},
		}},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: labels},
			Spec: clusterv1.MachineSpec{
				ClusterName: cluster, Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To(userData)},
				InfrastructureRef: infrastructure("MaasMachineTemplate", cluster),
			},
		},
	}}
	for _, change := range edit {
		change(deployment)
	}
	w.create(deployment)
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}}
}

// controlPlane creates a HostedControlPlane that is up, with the status that the control-plane-operator sets.
func (w *world) controlPlane() {
	hcp := fixture.ControlPlane()
	hcp.ObjectMeta = w.meta(cluster)
	w.create(hcp)
	hcp.Status.Initialized, hcp.Status.Ready = true, true
	hcp.Status.ExternalManagedControlPlane = ptr.To(true)
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api.example", Port: 6443}
	w.Expect(w.client.Status().Update(w.t.Context(), hcp)).To(Succeed())
}

// provide runs one reconcile of the fake infrastructure provider, which gives each MaasMachine a provider ID and a
// Node.
func (w *world) provide(ctx context.Context, g Gomega) {
	list := &infrav1.MaasMachineList{}
	g.Expect(w.client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	for i := range list.Items {
		machine := &list.Items[i]
		if machine.Status.Ready || !machine.DeletionTimestamp.IsZero() {
			continue
		}
		id := fmt.Sprintf("maas:///az1/%s", machine.Name)
		w.join(ctx, g, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.Name}, Spec: corev1.NodeSpec{ProviderID: id}})
		machine.Spec.ProviderID = ptr.To(id)
		g.Expect(w.client.Update(ctx, machine)).To(Succeed())
		machine.Status.Ready, machine.Status.Initialization.Provisioned = true, ptr.To(true)
		g.Expect(w.client.Status().Update(ctx, machine)).To(Succeed())
	}
}

// healthy holds the conditions that a kubelet reports for a healthy node. Cluster API needs all of them to regard a
// node as healthy.
var healthy = map[corev1.NodeConditionType]corev1.ConditionStatus{
	corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
	corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
}

// join creates a healthy Node, as a kubelet does.
func (w *world) join(ctx context.Context, g Gomega, node *corev1.Node) {
	err := w.client.Create(ctx, node)
	if apierrors.IsAlreadyExists(err) {
		err = w.client.Get(ctx, client.ObjectKeyFromObject(node), node)
	}
	g.Expect(err).NotTo(HaveOccurred())
	if len(node.Status.Conditions) == 0 {
		for kind, status := range healthy {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()})
		}
	}
	g.Expect(w.client.Status().Update(ctx, node)).To(Succeed())
}

// running returns the names of the Machines that have a Node, by UID.
func (w *world) running(ctx context.Context, g Gomega) map[types.UID]string {
	list := &clusterv1.MachineList{}
	g.Expect(w.client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	found := map[types.UID]string{}
	for _, machine := range list.Items {
		if machine.Status.NodeRef.Name != "" && machine.DeletionTimestamp.IsZero() {
			found[machine.UID] = machine.Name
		}
	}
	return found
}

// awaitMachines provides machines until count machines run and the MachineDeployment reports them. It returns their
// names by UID.
func (w *world) awaitMachines(ctx context.Context, count int32) map[types.UID]string {
	w.t.Helper()
	var found map[types.UID]string
	w.Eventually(func(g Gomega) {
		w.infrastructure(ctx, g)
		found = w.running(ctx, g)
		g.Expect(found).To(HaveLen(int(count)))
		deployment := w.deployment(ctx, g, cluster)
		g.Expect(deployment.Status.ObservedGeneration).To(Equal(deployment.Generation))
		g.Expect(deployment.Status.Replicas).To(HaveValue(Equal(count)))
		g.Expect(readyReplicas(deployment)).To(Equal(count))
	}, patience, tick).Should(Succeed())
	return found
}

// readyReplicas returns the number of ready replicas of either contract version. A manager of v1beta1 counts them in a
// field that v1beta2 keeps as deprecated.
func readyReplicas(deployment *clusterv1.MachineDeployment) int32 {
	if deployment.Status.Deprecated != nil && deployment.Status.Deprecated.V1Beta1 != nil {
		return max(ptr.Deref(deployment.Status.ReadyReplicas, 0), deployment.Status.Deprecated.V1Beta1.ReadyReplicas)
	}
	return ptr.Deref(deployment.Status.ReadyReplicas, 0)
}

func (w *world) deployment(ctx context.Context, g Gomega, name string) *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{}
	g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, deployment)).To(Succeed())
	return deployment
}

// change edits a MachineDeployment. It retries, because the managers write the object too.
func (w *world) change(ctx context.Context, name string, edit func(*clusterv1.MachineDeployment)) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		deployment := w.deployment(ctx, g, name)
		edit(deployment)
		g.Expect(w.client.Update(ctx, deployment)).To(Succeed())
	}, patience, tick).Should(Succeed())
}

// TestManagers runs the managers one after the other on the same objects, as upgrades of a payload do.
func TestManagers(t *testing.T) {
	managers := binaries(t)
	w := newWorld(t)
	ctx := t.Context()
	stopConverting := w.operator()
	w.hostedCluster()
	w.Eventually(func() error {
		return w.client.List(ctx, &clusterv1beta1.MachineSetList{}, client.InNamespace(namespace))
	}, patience, tick).Should(Succeed(), "the API server has not got the authority")
	count := int32(2)
	known := map[types.UID]string{}
	grow := func(w *world) {
		w.t.Helper()
		machines := w.awaitMachines(ctx, count)
		for uid, name := range known {
			w.Expect(machines).To(HaveKeyWithValue(uid, name), "a Machine was replaced")
		}
		known = machines
		count++
		w.change(ctx, cluster, func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = ptr.To(count) })
	}
	for i, binary := range managers {
		t.Run("When the manager of "+versionOf(binary)+" takes over, it should keep every Machine and create new ones", func(t *testing.T) {
			stage := w.in(t)
			stop := stage.manager(binary)
			grow(stage)
			grow(stage)
			stopConverting()
			if i == len(managers)-1 {
				// Only the newest manager uses the storage version of the CRDs. The others need the conversion
				// webhook.
				grow(stage)
			}
			stopConverting = w.operator()
			grow(stage)
			stage.awaitMachines(ctx, count)
			stop()
		})
	}
}
