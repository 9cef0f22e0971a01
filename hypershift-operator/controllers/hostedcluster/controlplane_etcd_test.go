// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// sized returns an etcd spec with volumes of the given size; empty omits the size.
func sized(size string) hyperv1.EtcdSpec {
	etcd := hyperv1.EtcdSpec{Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{PersistentVolume: &hyperv1.PersistentVolumeEtcdStorageSpec{}}}}
	if size != "" {
		etcd.Managed.Storage.PersistentVolume.Size = ptr.To(resource.MustParse(size))
	}
	return etcd
}

func TestVolumesKeepTheirSize(t *testing.T) {
	openshift, kubernetes, unread := released(releaseinfo.OpenShift), released(releaseinfo.Kubernetes), func(*scope) {}
	for name, tc := range map[string]struct {
		release           func(*scope)
		wanted, had, want string
		said              bool
	}{
		"When the payload's operator cannot enlarge volumes, it should keep the size and report it": {openshift, "16Gi", "8Gi", "8Gi", true},
		"When the new size is smaller, it should keep the old size":                                 {openshift, "4Gi", "8Gi", "8Gi", true},
		"When the same size is written in another unit, it should report nothing":                   {openshift, "8192Mi", "8Gi", "8192Mi", false},
		"When the product's operator runs the control plane, it should enlarge the volumes":         {kubernetes, "16Gi", "8Gi", "16Gi", false},
		"When the release is not known, it should keep the size for now":                            {unread, "16Gi", "8Gi", "8Gi", false},
		"When the volumes had no size, it should use the desired size":                              {openshift, "16Gi", "", "16Gi", false},
		"When the size is removed from the spec, it should report nothing":                          {openshift, "", "8Gi", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g, s, wanted, had := NewWithT(t), withScope(tc.release), sized(tc.wanted), sized(tc.had)
			s.keepVolumes(wanted, had)
			want := sized(tc.want)
			g.Expect(equality.Semantic.DeepEqual(wanted, want)).To(BeTrue(), "%v", volumeSize(wanted))
			g.Expect(equality.Semantic.DeepEqual(had, sized(tc.had))).To(BeTrue(), "what was is not ours to change")
			c, said := s.Conditions[string(hyperv1.ValidHostedClusterConfiguration)]
			g.Expect(said).To(Equal(tc.said))
			if said {
				g.Expect(string(c.Status) + "/" + c.Reason).To(Equal("True/AsExpected"))
				g.Expect(c.Message).To(And(ContainSubstring("etcd.managed.storage.persistentVolume.size"), ContainSubstring("at 8Gi")))
			}
		})
	}
	t.Run("When etcd is not managed or has no volume, it should return no size", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(volumeSize(hyperv1.EtcdSpec{})).To(BeNil())
		g.Expect(volumeSize(hyperv1.EtcdSpec{Managed: &hyperv1.ManagedEtcdSpec{}})).To(BeNil())
	})
	t.Run("When the control plane is updated, the volumes should keep their size", func(t *testing.T) {
		g, s, hcp := NewWithT(t), withScope(openshift), &hyperv1.HostedControlPlane{}
		hcp.Spec.Etcd, s.HC.Spec.Etcd = sized("8Gi"), sized("16Gi")
		g.Expect(s.shapeControlPlane(hcp)).To(Succeed())
		g.Expect(volumeSize(hcp.Spec.Etcd).String()).To(Equal("8Gi"))
		g.Expect(volumeSize(s.HC.Spec.Etcd).String()).To(Equal("16Gi"), "the user's own spec does not change")
	})
}
