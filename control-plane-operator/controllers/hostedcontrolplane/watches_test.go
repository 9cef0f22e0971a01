// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestWatches checks that each kind that a control plane depends on triggers a reconcile. The reconciled control planes
// do not exist, so only the watch can trigger it.
func TestWatches(t *testing.T) {
	const namespace = "default"
	cfg := testenv.Start(t, crds.HyperShift)
	requests := testenv.Manage(t, cfg, fixture.Scheme(), func(mgr ctrl.Manager) error {
		mgr.GetClient().(*testenv.Requests).Listed = []client.Object{
			&hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-the-namespace"}},
		}
		return (&Reconciler{Client: mgr.GetClient(), OperateOnReleaseImage: "none"}).SetupWithManager(mgr)
	})
	owned := func(by string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: by, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane", Name: by, UID: "uid", Controller: ptr.To(true)}}}
	}
	labels := map[string]string{"app": "demo"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	pods := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "demo", Image: "registry.example/demo"}}}}
	once := *pods.DeepCopy()
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	controlPlane := fixture.ControlPlane()
	controlPlane.Namespace, controlPlane.Name = namespace, "control-plane"
	for _, tc := range []struct {
		kind, controlPlane string
		obj                client.Object
	}{
		{"HostedControlPlane", "control-plane", controlPlane},
		{"ControlPlaneComponent", "component", &hyperv1.ControlPlaneComponent{ObjectMeta: owned("component")}},
		{"Deployment", "deployment", &appsv1.Deployment{ObjectMeta: owned("deployment"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: pods}}},
		{"StatefulSet", "stateful-set", &appsv1.StatefulSet{ObjectMeta: owned("stateful-set"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: pods}}},
		{"Job", "job", &batchv1.Job{ObjectMeta: owned("job"), Spec: batchv1.JobSpec{Template: once}}},
		{"Service", "service", &corev1.Service{ObjectMeta: owned("service"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}},
		{"Secret", "of-the-namespace", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "input"}}},
		{"ConfigMap", "of-the-namespace", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "input"}}},
	} {
		t.Run("When a "+tc.kind+" appears, it should reconcile its control plane", func(t *testing.T) {
			requests.ExpectCreated(t, tc.obj, &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tc.controlPlane}})
		})
	}
}
