// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// TestRestoredInfrastructure is about the place of a MaasCluster that was lost.
func TestRestoredInfrastructure(t *testing.T) {
	restored := map[string]string{hyperv1.RestoredInfrastructureAnnotation: "lost-uid"}
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		live        metav1.ObjectMeta
		want        string
	}{
		{"When a restored cluster gets its MaasCluster, that should take the place of the lost one", restored, metav1.ObjectMeta{}, "lost-uid"},
		{"When nothing is restored, it should have its own", nil, metav1.ObjectMeta{}, ""},
		{"When the MaasCluster has lived before, it should keep the machines that it has", restored, metav1.ObjectMeta{UID: "own"}, ""},
		{"When the annotation goes later, it should still know its machines", nil,
			metav1.ObjectMeta{UID: "own", Annotations: map[string]string{infrav1.RestoredFromAnnotation: "lost-uid"}}, "lost-uid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Annotations: tc.annotations}}
			hc.Spec.Platform.MAAS = &hyperv1.MAASPlatformSpec{}
			hcp := &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{ControlPlaneEndpoint: hyperv1.APIEndpoint{Host: "api", Port: 6443}}}
			object := (&Platform{}).InfraCluster(platform.Cluster{HostedCluster: hc, ControlPlane: hcp, Namespace: "clusters-demo"})
			infra := object.Object.(*infrav1.MaasCluster)
			infra.UID, infra.Annotations = tc.live.UID, tc.live.Annotations
			g.Expect(object.Mutate()).To(Succeed())
			g.Expect(infra.Annotations[infrav1.RestoredFromAnnotation]).To(Equal(tc.want))
		})
	}
}
