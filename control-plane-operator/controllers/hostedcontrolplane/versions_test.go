// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// TestVersions checks what the status reports about the releases of the control plane and of the guest.
func TestVersions(t *testing.T) {
	const image, own = "registry.example/release:1.36.3", "registry.example/release:1.36.4"
	begin := func(generation int64) hyperv1.HostedControlPlaneStatus {
		s, o := healthy()
		s.hcp.Generation, s.hcp.Spec.ControlPlaneReleaseImage = generation, ptr.To(own)
		s.release = releaseinfo.New("", kubernetes("1.36.4"))
		return status(s, o, now)
	}
	t.Run("When a control plane starts, each side should report its own release as started now", func(t *testing.T) {
		next := begin(3)
		want := hyperv1.ControlPlaneVersionStatus{
			Desired: configv1.Release{Version: "1.36.4", Image: own}, ObservedGeneration: 3,
			History: []hyperv1.ControlPlaneUpdateHistory{{State: configv1.PartialUpdate, StartedTime: metav1.NewTime(now), Version: "1.36.4", Image: own}},
		}
		if diff := cmp.Diff(want, next.ControlPlaneVersion); diff != "" {
			t.Errorf("control plane: -want +got\n%s", diff)
		}
		guest := &hyperv1.ClusterVersionStatus{
			Desired: configv1.Release{Version: "1.36.3", Image: image}, ObservedGeneration: 3,
			History: []configv1.UpdateHistory{{State: configv1.PartialUpdate, StartedTime: metav1.NewTime(now), Version: "1.36.3", Image: image}},
		}
		if diff := cmp.Diff(guest, next.VersionStatus); diff != "" {
			t.Errorf("guest: -want +got\n%s", diff)
		}
		NewWithT(t).Expect(next.ReleaseImage).To(Equal(image))
		NewWithT(t).Expect(next.LastReleaseImageTransitionTime).To(Equal(ptr.To(metav1.NewTime(now))))
		NewWithT(t).Expect(begin(0).ControlPlaneVersion.ObservedGeneration).To(BeEquivalentTo(1), "the schema takes no 0")
	})
	t.Run("When the release stays, its transition time should stay, and otherwise it should be now", func(t *testing.T) {
		g := NewWithT(t)
		s, o := healthy()
		s.hcp.Status = status(s, o, now)
		s.hcp.Status = status(s, o, now.Add(time.Hour))
		g.Expect(s.hcp.Status.LastReleaseImageTransitionTime.Time).To(Equal(now))
		s.hcp.Spec.ReleaseImage = own
		g.Expect(status(s, o, now.Add(time.Hour)).LastReleaseImageTransitionTime.Time).To(Equal(now.Add(time.Hour)))
		s.hcp.Spec.ReleaseImage, s.hcp.Status.LastReleaseImageTransitionTime = image, nil
		g.Expect(status(s, o, now.Add(2*time.Hour)).LastReleaseImageTransitionTime.Time).To(Equal(now.Add(2*time.Hour)), "who did not know it")
	})
	for name, unknown := range map[string]func(*scope){
		"When the control plane's release is unknown, it should report no version": func(s *scope) { s.release = nil },
		"When the guest's release is unknown, it should report no version":         func(s *scope) { s.guestRelease = nil },
		"When the requested release failed, it should report no version":           func(s *scope) { s.releaseErr = errors.New("no such tag") },
	} {
		t.Run(name, func(t *testing.T) {
			s, o := healthy()
			unknown(s)
			next := status(s, o, now)
			NewWithT(t).Expect(next.VersionStatus).To(BeNil())
			NewWithT(t).Expect(next.ControlPlaneVersion.History).To(BeEmpty())
		})
	}
	t.Run("When components lag behind, it should name them in order and not complete the release", func(t *testing.T) {
		g := NewWithT(t)
		s, o := healthy()
		o.components = append(o.components, done("kube-scheduler", "1.36.2"), done("kube-controller-manager", "1.36.2"))
		for range 2 {
			s.hcp.Status = status(s, o, now)
		}
		g.Expect(s.hcp.Status.ControlPlaneVersion.History[0].State).To(Equal(configv1.PartialUpdate))
		g.Expect(s.hcp.Status.Version).To(BeEmpty())
		c := find(s.hcp.Status.Conditions, hyperv1.ClusterVersionProgressing)
		g.Expect(c.Message).To(HaveSuffix("waiting for kube-controller-manager, kube-scheduler"))
	})
	t.Run("When the release has not been read, it should report that it waits for the release image", func(t *testing.T) {
		s, o := healthy()
		s.hcp.Status = status(s, o, now)
		s.guestRelease = nil
		c := find(status(s, o, now).Conditions, hyperv1.ClusterVersionProgressing)
		NewWithT(t).Expect(c.Message).To(ContainSubstring("release image"))
	})
}

// TestStatusNames checks which Secrets the status names for users.
func TestStatusNames(t *testing.T) {
	admin := &hyperv1.KubeconfigSecretRef{Name: pki.AdminKubeconfig, Key: "kubeconfig"}
	custom := &hyperv1.KubeconfigSecretRef{Name: pki.CustomAdminKubeconfig, Key: "kubeconfig"}
	for name, tc := range map[string]struct {
		has, hasCustom bool
		dnsName        string
		want           []*hyperv1.KubeconfigSecretRef
	}{
		"When both kubeconfigs exist, it should name both":                                                  {true, true, "api.example.com", []*hyperv1.KubeconfigSecretRef{admin, custom}},
		"When the kubeconfig for kubeAPIServerDNSName is missing, it should name only the admin kubeconfig": {true, false, "api.example.com", []*hyperv1.KubeconfigSecretRef{admin, nil}},
		"When kubeAPIServerDNSName is removed, it should stop naming its kubeconfig":                        {true, true, "", []*hyperv1.KubeconfigSecretRef{admin, nil}},
		"When the admin kubeconfig is missing, it should name none":                                         {false, false, "", []*hyperv1.KubeconfigSecretRef{nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := healthy()
			s.hcp.Status.KubeConfig, s.hcp.Status.CustomKubeconfig = admin, custom
			o.hasKubeconfig, o.hasCustomKubeconfig, s.hcp.Spec.KubeAPIServerDNSName = tc.has, tc.hasCustom, tc.dnsName
			next := status(s, o, now)
			if diff := cmp.Diff(tc.want, []*hyperv1.KubeconfigSecretRef{next.KubeConfig, next.CustomKubeconfig}); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if !ptr.Deref(next.ExternalManagedControlPlane, false) {
				t.Error("Cluster API would look for machines of a control plane")
			}
		})
	}
	wanted := &hyperv1.SecretEncryptionKeyStatus{Provider: hyperv1.SecretEncryptionProviderAESCBC, AESCBC: hyperv1.AESCBCKeyStatus{DataHash: "1234"}}
	for name, tc := range map[string]struct {
		config *corev1.Secret
		key    *hyperv1.SecretEncryptionKeyStatus
		told   bool
	}{
		"When Secrets are encrypted, it should report the target key":             {&corev1.Secret{}, wanted, true},
		"When the key is unknown, it should report no target key":                 {&corev1.Secret{}, nil, false},
		"When no encryption configuration exists, it should report no target key": {nil, wanted, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := healthy()
			o.encryption, o.encryptionKey = tc.config, tc.key
			NewWithT(t).Expect(status(s, o, now).SecretEncryption.TargetKey.AESCBC.DataHash == "1234").To(Equal(tc.told))
		})
	}
}
