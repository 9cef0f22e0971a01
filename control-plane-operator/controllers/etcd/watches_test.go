// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestWatches checks that each kind that the etcd controller watches triggers a reconcile. The members are polled every
// half minute, so a missing watch would only make a repair slower.
func TestWatches(t *testing.T) {
	const namespace = metav1.NamespaceDefault
	config := testenv.Start(t, crds.HyperShift)
	requests := testenv.Manage(t, config, fixture.Scheme(), func(mgr ctrl.Manager) error {
		return (&Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clocktesting.NewFakePassiveClock(time.Now())}).SetupWithManager(mgr)
	})
	labels := map[string]string{"app": "etcd"}
	controlPlane := fixture.ControlPlane()
	controlPlane.Namespace, controlPlane.Name = namespace, "control-plane"
	for _, tc := range []struct {
		kind, controlPlane string
		obj                client.Object
	}{
		{"HostedControlPlane", "control-plane", controlPlane},
		{"StatefulSet", "absent", &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "members", OwnerReferences: []metav1.OwnerReference{{
				APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane", Name: "absent", UID: "uid", Controller: ptr.To(true)}}},
			Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()}},
		}},
	} {
		t.Run("When a "+tc.kind+" appears, it should check the members", func(t *testing.T) {
			requests.ExpectCreated(t, tc.obj, &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tc.controlPlane}})
		})
	}
}
