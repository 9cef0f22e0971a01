// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestWatches checks that each kind that the payload of a token depends on triggers a reconcile. The reconciled token
// Secrets do not exist, so only the watch can trigger it.
func TestWatches(t *testing.T) {
	const namespace = "default"
	config, scheme := testenv.Start(t, crds.HyperShift), runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hyperv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	grant := func(name string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{hyperv1.SecretGrantLabel: "ignition-server"}}}
	}
	requests := testenv.Manage(t, config, scheme, func(mgr ctrl.Manager) error {
		mgr.GetClient().(*testenv.Requests).Listed = []client.Object{grant("each-token")}
		return (&token.Reconciler{Client: mgr.GetClient(), Cache: token.NewCache(clock.RealClock{}), Clock: clock.RealClock{}}).SetupWithManager(mgr)
	})
	for _, tc := range []struct {
		kind, token string
		obj         client.Object
	}{
		{"Role that lets a token be read", "granted", grant("granted")},
		{"ConfigMap that payloads are rendered from", "each-token",
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "user-ca-bundle"}}},
		{"HostedControlPlane", "each-token", controlPlane(namespace, "registry.example/release:1")},
	} {
		t.Run("When a "+tc.kind+" appears, it should reconcile the token", func(t *testing.T) {
			requests.ExpectCreated(t, tc.obj, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tc.token}})
		})
	}
}
