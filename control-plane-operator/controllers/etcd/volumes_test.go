// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestVolumes runs one real member, on a claim whose StorageClass exists in the API server.
func TestVolumes(t *testing.T) {
	api := newAPI(t, crds.HyperShift)
	for class, expands := range map[string]bool{"grows": true, "stays": false} {
		err := api.Create(t.Context(), &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "example.com/disks", AllowVolumeExpansion: ptr.To(expands),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("When the size grows and the StorageClass allows it, it should expand the volume and report progress", func(t *testing.T) {
		g, w := NewWithT(t), onClaim(t, api, "grows")
		w.pass()
		g.Expect(w.condition(hyperv1.EtcdVolumesResized)).To(Equal("none"), "nothing was to be done")
		w.ask("2Gi")
		w.pass()
		g.Expect(w.claim("etcd-0").Spec.Resources.Requests.Storage().String()).To(Equal("2Gi"))
		g.Expect(w.condition(hyperv1.EtcdVolumesResized)).To(Equal("False/ExpansionInProgress: Waiting for the volumes to have 2Gi: that of etcd-0 has 1Gi"))
		w.fills("1Gi", corev1.PersistentVolumeClaimCondition{
			Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue, Message: "Waiting for user to (re-)start a pod",
		})
		w.pass()
		g.Expect(w.condition(hyperv1.EtcdVolumesResized)).To(ContainSubstring("has 1Gi (Waiting for user to (re-)start a pod)"))
		w.fills("2Gi")
		w.pass()
		g.Expect(w.condition(hyperv1.EtcdVolumesResized)).To(Equal("True/AsExpected: "))
		counted := &testenv.Writes{}
		w.operator.Client = counted.Client(w.client)
		w.pass()
		g.Expect(counted.Count).To(Equal(0))
	})
	t.Run("When the StorageClass does not allow expansion, it should say so and keep the quota", func(t *testing.T) {
		g, w := NewWithT(t), onClaim(t, api, "stays")
		w.ask("2Gi")
		w.pass()
		g.Expect(w.claim("etcd-0").Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))
		g.Expect(w.condition(hyperv1.EtcdVolumesResized)).To(And(
			HavePrefix("False/ExpansionRefused: etcd.managed.storage.persistentVolume.size is 2Gi, and the volumes cannot grow (that of etcd-0 has 1Gi): "),
			ContainSubstring("must support resize"), ContainSubstring("Set allowVolumeExpansion")))
		g.Expect(component.Quota(w.hcp, []corev1.PersistentVolumeClaim{*w.claim("etcd-0")})).To(BeNumerically("~", (1<<30)/5*4, 8))
	})
	t.Run("When the control plane is paused, it should not resize the volumes", func(t *testing.T) {
		g, w := NewWithT(t), onClaim(t, api, "grows")
		w.hcp.Spec.PausedUntil = ptr.To("true")
		w.ask("2Gi")
		w.pass()
		g.Expect(w.claim("etcd-0").Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))
	})
}

// onClaim returns a control plane with one member that has 1Gi of a StorageClass.
func onClaim(t *testing.T, api client.WithWatch, class string) *world {
	t.Helper()
	w := newWorld(t, api, hyperv1.SingleReplica, func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.Etcd.Managed.Storage.PersistentVolume = &hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse("1Gi"))}
	})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.ClaimName("etcd-0")}}
	claim.Spec.StorageClassName = &class
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	w.must(api.Create(t.Context(), claim))
	w.fills("1Gi")
	w.goesOn("True/AsExpected")
	return w
}

// ask sets the size that the user requests.
func (w *world) ask(size string) {
	w.t.Helper()
	paused := w.hcp.Spec.PausedUntil
	w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp))
	w.hcp.Spec.PausedUntil = paused
	w.hcp.Spec.Etcd.Managed.Storage.PersistentVolume.Size = ptr.To(resource.MustParse(size))
	w.must(w.client.Update(w.t.Context(), w.hcp))
}

// fills sets the claim's status as the storage does.
func (w *world) fills(size string, conditions ...corev1.PersistentVolumeClaimCondition) {
	w.t.Helper()
	claim := w.claim("etcd-0")
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	claim.Status.Conditions = conditions
	w.must(w.client.Status().Update(w.t.Context(), claim))
}
