// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestQuota(t *testing.T) {
	managed := func(volume *hyperv1.PersistentVolumeEtcdStorageSpec) *hyperv1.HostedControlPlane {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{PersistentVolume: volume}}
		return hcp
	}
	size := func(text string) *hyperv1.PersistentVolumeEtcdStorageSpec {
		return &hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse(text))}
	}
	tests := []struct {
		name string
		hcp  *hyperv1.HostedControlPlane
		want string
	}{
		{"When the user says nothing it should be of the default volume", managed(nil), "6.4Gi"},
		{"When the volume has a class only it should be of the default volume", managed(&hyperv1.PersistentVolumeEtcdStorageSpec{StorageClassName: ptr.To("fast")}), "6.4Gi"},
		{"When the volume is small it should leave a fifth of it", managed(size("4Gi")), "3.2Gi"},
		{"When the volume is large it should grow with it", managed(size("20Gi")), "16Gi"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			want := resource.MustParse(tt.want)
			g.Expect(Quota(tt.hcp, nil)).To(BeNumerically("~", want.Value(), 8))
		})
	}
}
