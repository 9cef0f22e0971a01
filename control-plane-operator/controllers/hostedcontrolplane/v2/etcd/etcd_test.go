// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestURLs(t *testing.T) {
	const ns = "clusters-demo"
	for name, tc := range map[string]struct {
		policy    hyperv1.AvailabilityPolicy
		unmanaged string
		want      []string
	}{
		"When there are three members, the API server should connect to each by its name": {policy: hyperv1.HighlyAvailable, want: []string{
			"https://etcd-0.etcd-discovery.clusters-demo.svc:2379",
			"https://etcd-1.etcd-discovery.clusters-demo.svc:2379",
			"https://etcd-2.etcd-discovery.clusters-demo.svc:2379",
		}},
		"When there is one member, the API server should connect through the Service": {policy: hyperv1.SingleReplica, want: []string{"https://etcd-client.clusters-demo.svc:2379"}},
		"When the user's etcd has several URLs, it should return each of them":        {policy: hyperv1.SingleReplica, unmanaged: "https://a:2379,https://b:2379", want: []string{"https://a:2379", "https://b:2379"}},
		"When the user's etcd has one URL, it should return that URL":                 {policy: hyperv1.HighlyAvailable, unmanaged: "https://etcd.example:2379", want: []string{"https://etcd.example:2379"}},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			if tc.unmanaged != "" {
				hcp = own(tc.unmanaged)
			}
			hcp.Namespace, hcp.Spec.ControllerAvailabilityPolicy = ns, tc.policy
			NewWithT(t).Expect(URLs(hcp)).To(Equal(tc.want))
		})
	}
}

// own returns a control plane whose etcd the user provides.
func own(endpoint string) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{Endpoint: endpoint}}
	return hcp
}

func TestValidateEndpoint(t *testing.T) {
	for endpoint, fault := range map[string]string{
		"https://etcd.example:2379":      "",
		"https://etcd.example:2379/":     "",
		"https://[2001:db8::1]:2379":     "",
		"https://a:2379,https://b:2379":  "",
		"https://etcd.example":           `"https://etcd.example" is not an https URL with a host and a port`,
		"https://:2379":                  `"https://:2379" is no`,
		"https://":                       `"https://" is no`,
		"https://a:2379, https://b:2379": `" https://b:2379" is no`,
		"https://a:2379,http://b:2379":   `"http://b:2379" is no`,
		"https://a:2379,":                `"" is no`,
	} {
		t.Run("When the endpoint is "+endpoint+", it should be accepted or named in an error", func(t *testing.T) {
			g := NewWithT(t)
			err := ValidateEndpoint(own(endpoint))
			if fault == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(HavePrefix("etcd.unmanaged.endpoint: " + fault)))
		})
	}
	NewWithT(t).Expect(ValidateEndpoint(&hyperv1.HostedControlPlane{})).To(Succeed(), "a managed etcd has no endpoint of the user's")
}

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
		{"When no storage is set, it should use the size of the default volume", managed(nil), "6.4Gi"},
		{"When only the storage class is set, it should use the size of the default volume", managed(&hyperv1.PersistentVolumeEtcdStorageSpec{StorageClassName: ptr.To("fast")}), "6.4Gi"},
		{"When the volume is small, it should leave a fifth of it free", managed(size("4Gi")), "3.2Gi"},
		{"When the volume is large, the quota should grow with it", managed(size("20Gi")), "16Gi"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			want := resource.MustParse(tt.want)
			g.Expect(Quota(tt.hcp, nil)).To(BeNumerically("~", want.Value(), 8))
		})
	}
}

func TestQuotaOfVolumes(t *testing.T) {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{
		PersistentVolume: &hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse("16Gi"))},
	}}
	claims := func(sizes ...string) []corev1.PersistentVolumeClaim {
		all := make([]corev1.PersistentVolumeClaim, len(sizes)+1)
		for i, size := range sizes {
			all[i].Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		}
		return all
	}
	for name, tc := range map[string]struct {
		claims []corev1.PersistentVolumeClaim
		want   string
	}{
		"When one volume has not grown yet, it should use the size of that volume": {claims("16Gi", "8Gi"), "6.4Gi"},
		"When all volumes have grown, it should use the new size":                  {claims("16Gi", "16Gi"), "12.8Gi"},
		"When a volume is larger than requested, it should use the requested size": {claims("20Gi"), "12.8Gi"},
		"When no volume exists yet, it should use the requested size":              {claims(), "12.8Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			want := resource.MustParse(tc.want)
			NewWithT(t).Expect(Quota(hcp, tc.claims)).To(BeNumerically("~", want.Value(), 8))
		})
	}
}
