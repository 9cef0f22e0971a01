// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/testenv"
)

// TestRefusals checks that a failed write of a certificate is an error: the clients of the certificate cannot report
// that it is missing.
func TestRefusals(t *testing.T) {
	for name, edit := range map[string]func(*world){
		"a cluster with its own etcd and DNS name is created": func(w *world) {
			w.hcp.Spec.KubeAPIServerDNSName = "kube.example.com"
			w.hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{
				TLS: hyperv1.EtcdTLSConfig{ClientSecret: corev1.LocalObjectReference{Name: "mine"}},
			}}
		},
		"signers rotate and its DNS name is removed": func(w *world) {
			w.hcp.Spec.KubeAPIServerDNSName = "kube.example.com"
			NewWithT(w.t).Expect(w.pass()).To(Succeed())
			w.hcp.Spec.KubeAPIServerDNSName = ""
			w.annotate(map[string]string{RotationAnnotation: "all=1"})
		},
	} {
		t.Run("When a request is refused as "+name+" it should fail and succeed on a retry", func(t *testing.T) {
			w := newWorld(t, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"},
				Data:       map[string][]byte{"etcd-client.crt": []byte("C"), "etcd-client.key": []byte("K"), "etcd-client-ca.crt": []byte("CA")},
			})
			edit(w)
			grudging := testenv.NewGrudging(w.r.Client.(crclient.WithWatch))
			w.r.Client = grudging
			grudging.Exhaust(t, func() (ctrl.Result, error) { return ctrl.Result{}, w.pass() }, func() any { return nil })
		})
	}
}

func TestOwned(t *testing.T) {
	w := newWorld(t)
	if err := w.pass(); err != nil {
		t.Fatal(err)
	}
	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	for _, list := range []crclient.ObjectList{secrets, configMaps} {
		if err := w.r.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	owned := func(kind string, obj crclient.Object) {
		t.Run("When a control plane is deleted, "+kind+" "+obj.GetName()+" should be garbage-collected", func(t *testing.T) {
			NewWithT(t).Expect(metav1.IsControlledBy(obj, w.hcp)).To(Equal(obj.GetName() != ServiceAccountKeys), "the operator writes that one too")
		})
	}
	for i := range secrets.Items {
		owned("Secret", &secrets.Items[i])
	}
	for i := range configMaps.Items {
		owned("ConfigMap", &configMaps.Items[i])
	}
}
