// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/phase"
)

// ownEtcd sets a spec whose PKI depends on a Secret of that name, which does not exist. The error of a reconcile thus
// shows which spec it used.
func ownEtcd(hcp *hyperv1.HostedControlPlane, secret string) {
	hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{
		TLS: hyperv1.EtcdTLSConfig{ClientSecret: corev1.LocalObjectReference{Name: secret}}}}
	delete(hcp.Annotations, pki.DisableAnnotation)
}

// TestRenew renews the certificates of a control plane that cannot be reconciled otherwise. Its client fails all
// requests, and the error shows which spec was used.
func TestRenew(t *testing.T) {
	remembers := func(t *testing.T) (*world, *scope) {
		t.Helper()
		w := fakeWorld(t)
		s := w.begin()
		ownEtcd(s.hcp, "of-the-last-valid-spec")
		NewWithT(t).Expect(w.r.rememberSpec(t.Context(), s.hcp)).To(Succeed())
		ownEtcd(s.hcp, "of-now")
		s.hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 30443}
		w.r.PKI.Client = refusing{w.client}
		return w, s
	}
	t.Run("When the address was published, it should renew certificates by the last valid spec", func(t *testing.T) {
		g := NewWithT(t)
		w, s := remembers(t)
		g.Expect(w.r.renew(t.Context(), s)).To(And(MatchError(errNoServices), MatchError(ContainSubstring("of-the-last-valid-spec"))))
		g.Expect(s.pkiErr).To(MatchError(errNoServices), "for the condition")
		g.Expect(s.hcp.Spec.Etcd.Unmanaged.TLS.ClientSecret.Name).To(Equal("of-now"), "what the user wants stays")
	})
	t.Run("When the address was never published, it should renew no certificates", func(t *testing.T) {
		w, s := remembers(t)
		s.hcp.Status.ControlPlaneEndpoint.Host = ""
		NewWithT(t).Expect(w.r.renew(t.Context(), s)).To(Succeed())
	})
	t.Run("When no spec was ever valid, it should renew no certificates", func(t *testing.T) {
		w, s := remembers(t)
		NewWithT(t).Expect(w.client.Delete(t.Context(), secretOf("last-valid-spec", nil))).To(Succeed())
		NewWithT(t).Expect(w.r.renew(t.Context(), s)).To(Succeed())
	})
	t.Run("When the last valid spec cannot be read, it should return an error", func(t *testing.T) {
		w, s := remembers(t)
		w.refuse("get v1.Secret clusters-demo/last-valid-spec")
		NewWithT(t).Expect(w.r.renew(t.Context(), s)).To(MatchError(errRefused))
	})
	t.Run("When certificates are renewed, the Pods should roll out with them", func(t *testing.T) {
		g := NewWithT(t)
		w, s := remembers(t)
		s.hcp.Annotations = map[string]string{pki.DisableAnnotation: "true"}
		d := deployment("kube-scheduler", true)
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "pull-secret"}}}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a"}}
		w.create(d)
		g.Expect(w.r.renew(t.Context(), s)).To(Succeed())
		w.get("kube-scheduler", d)
		g.Expect(d.Spec.Template.Annotations).To(HaveKey("component.hypershift.openshift.io/config-hash"))
		w.refuse("list v1.DeploymentList")
		g.Expect(w.r.renew(t.Context(), s)).To(MatchError(errRefused))
	})
	t.Run("When the control plane is paused, certifyPaused should renew certificates, and otherwise do nothing", func(t *testing.T) {
		g := NewWithT(t)
		w, s := remembers(t)
		_, err := w.r.certifyPaused(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		s.paused = true
		_, err = w.r.certifyPaused(t.Context(), s)
		g.Expect(err).To(MatchError(ContainSubstring("of-the-last-valid-spec")))
	})
	t.Run("When the spec is valid, it should issue certificates by that spec and record the error", func(t *testing.T) {
		g := NewWithT(t)
		w, s := remembers(t)
		s.valid = s.hcp
		_, err := w.r.certify(t.Context(), s)
		g.Expect(err).To(MatchError(ContainSubstring("of-now")))
		g.Expect(s.pkiErr).To(Equal(err))
	})
}

// TestValidate checks which spec a reconcile uses.
func TestValidate(t *testing.T) {
	invalid := func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: "api.example.com"}}
	}
	validate := func(w *world, shape ...func(*hyperv1.HostedControlPlane)) (*scope, error) {
		s := w.begin()
		s.valid = nil
		for _, f := range shape {
			f(s.hcp)
		}
		_, err := w.r.validate(t.Context(), s)
		return s, err
	}
	t.Run("When a spec is valid, it should use it and save it as the last valid spec", func(t *testing.T) {
		g := NewWithT(t)
		w := fakeWorld(t)
		s, err := validate(w)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.invalid).NotTo(HaveOccurred())
		g.Expect(s.valid).To(BeIdenticalTo(s.hcp))
		secret := &corev1.Secret{}
		w.get("last-valid-spec", secret)
		spec := hyperv1.HostedControlPlaneSpec{}
		g.Expect(json.Unmarshal(secret.Data["spec.json"], &spec)).To(Succeed())
		g.Expect(spec).To(Equal(s.hcp.Spec))
		g.Expect(metav1.IsControlledBy(secret, s.hcp)).To(BeTrue(), "it goes with the control plane")

		s, err = validate(w, invalid, func(hcp *hyperv1.HostedControlPlane) { hcp.Labels = map[string]string{"of": "now"} })
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.invalid).To(MatchError(ContainSubstring("APIServer")))
		g.Expect(s.valid.Spec).To(Equal(spec))
		g.Expect(s.valid.Labels).To(HaveKeyWithValue("of", "now"))
		g.Expect(s.hcp.Spec).NotTo(Equal(spec), "what the user wants stays")
	})
	t.Run("When a component cannot work with a spec, it should treat the spec as invalid", func(t *testing.T) {
		s, err := validate(fakeWorld(t), func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform}
		})
		NewWithT(t).Expect(err).To(MatchError(phase.ErrStop))
		NewWithT(t).Expect(s.invalid).To(MatchError(ContainSubstring("platform.aws")))
	})
	t.Run("When no spec was ever valid, it should stop the reconcile", func(t *testing.T) {
		s, err := validate(fakeWorld(t), invalid)
		NewWithT(t).Expect(err).To(MatchError(phase.ErrStop))
		NewWithT(t).Expect(s.valid).To(BeNil())
	})
	t.Run("When the Secret has another owner, it should return an error", func(t *testing.T) {
		secret := secretOf("last-valid-spec", nil)
		secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "5678", Controller: ptr.To(true)}}
		_, err := validate(fakeWorld(t, secret))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("theirs")))
	})
	t.Run("When a tenant has created the Secret, it should reject its spec", func(t *testing.T) {
		raw, err := json.Marshal(hyperv1.HostedControlPlaneSpec{ReleaseImage: "evil.example/release:1"})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		s, err := validate(fakeWorld(t, secretOf("last-valid-spec", map[string][]byte{"spec.json": raw})), invalid)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("was not written by this control plane")))
		NewWithT(t).Expect(s.valid).To(BeNil())
	})
	t.Run("When the last valid spec cannot be saved, it should return an error", func(t *testing.T) {
		w := fakeWorld(t)
		w.refuse("create v1.Secret clusters-demo/last-valid-spec")
		_, err := validate(w)
		NewWithT(t).Expect(err).To(MatchError(errRefused))
	})
	for name, what := range map[string]string{"When the last one cannot be read, the reconcile should fail": "", "When there is no last one, the reconcile should fail and name its Secret": "clusters-demo/last-valid-spec"} {
		t.Run(name, func(t *testing.T) {
			secret := secretOf("last-valid-spec", map[string][]byte{"spec.json": []byte("{")})
			secret.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(fakeWorld(t).begin().hcp,
				hyperv1.GroupVersion.WithKind("HostedControlPlane"))}
			w := fakeWorld(t, secret)
			want := MatchError(ContainSubstring(what))
			if what == "" {
				w.refuse("get v1.Secret clusters-demo/last-valid-spec")
				want = MatchError(errRefused)
			}
			s, err := validate(w, invalid)
			NewWithT(t).Expect(err).To(want)
			NewWithT(t).Expect(s.valid).To(BeNil())
		})
	}
}

// TestPass runs a complete reconcile of a control plane with disabled PKI reconciliation.
func TestPass(t *testing.T) {
	g := NewWithT(t)
	w := fakeWorld(t)
	g.Expect(w.pass()).To(Succeed())
	g.Expect(refreshed(w).Finalizers).To(ConsistOf(Finalizer))
	g.Expect(w.workloads()).To(ContainElements("etcd", "kube-apiserver", "ignition-server"))
	g.Expect(w.condition(hyperv1.EtcdAvailable)).To(Equal("False/EtcdWaitingForQuorum"))
	w.rollOut()
	result, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(Equal(waitRequeue))
	g.Expect(w.condition(hyperv1.EtcdAvailable)).To(Equal("True/QuorumAvailable"))

	pausing := "true"
	w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.PausedUntil = &pausing })
	g.Expect(w.client.Delete(t.Context(), deployment("ignition-server", true))).To(Succeed())
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.condition(hyperv1.ReconciliationActive)).To(Equal("False/ReconciliationPaused"))
	g.Expect(w.workloads()).NotTo(ContainElement("ignition-server"), "paused")
	g.Expect(w.client.Delete(t.Context(), w.hcp)).To(Succeed())
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), &hyperv1.HostedControlPlane{})).To(MatchError(ContainSubstring("not found")))
}
