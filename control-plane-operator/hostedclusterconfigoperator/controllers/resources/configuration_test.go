// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
)

// change changes the spec or the annotations of the HostedControlPlane.
func (w *world) change(t *testing.T, mutate func(*hyperv1.HostedControlPlane)) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp)).To(Succeed())
	mutate(w.hcp)
	g.Expect(w.client.Update(t.Context(), w.hcp)).To(Succeed())
}

// trusts makes the cluster trust the certificates of a ConfigMap.
func (w *world) trusts(t *testing.T) {
	t.Helper()
	const name = "trusted"
	err := w.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"ca-bundle.crt": "CA"}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	w.change(t, func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: name}
	})
}

// mustPass reconciles until it succeeds. The test's API server needs time to serve new kinds, and also writes its own
// endpoints.
func (w *world) mustPass(t *testing.T) {
	t.Helper()
	NewWithT(t).Eventually(func() error { return w.pass(t.Context()) }).WithTimeout(timeout).Should(Succeed())
}

func (w *world) gone(t *testing.T, obj client.Object) bool {
	t.Helper()
	return apierrors.IsNotFound(w.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
}

// TestConfiguration checks that a user's configuration of a cluster is written to the guest, and later removed.
func TestConfiguration(t *testing.T) {
	w, g := newWorld(t), NewWithT(t)
	renewal := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "system-bootstrap-node-renewal"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "any"}}
	g.Expect(w.client.Create(t.Context(), renewal)).To(Succeed())
	w.trusts(t)
	w.change(t, func(hcp *hyperv1.HostedControlPlane) {
		hcp.Annotations = map[string]string{hyperv1.DisableIgnitionServerAnnotation: ""}
		hcp.Spec.DNS.PublicZoneID, hcp.Spec.DNS.PrivateZoneID = "public", "private"
		hcp.Spec.Configuration.Image = &configv1.ImageSpec{RegistrySources: configv1.RegistrySources{InsecureRegistries: []string{"registry.example"}}}
		hcp.Spec.Configuration.APIServer = &configv1.APIServerSpec{AdditionalCORSAllowedOrigins: []string{"console"},
			ServingCerts: configv1.APIServerServingCerts{NamedCertificates: []configv1.APIServerNamedServingCert{
				{Names: []string{"api.example"}, ServingCertificate: configv1.SecretNameReference{Name: "own"}}}}}
		hcp.Spec.Configuration.Scheduler = &configv1.SchedulerSpec{Profile: configv1.HighNodeUtilization}
	})
	w.mustPass(t)

	pullSecret := &corev1.Secret{}
	w.get(t, "openshift-config", "pull-secret", pullSecret)
	g.Expect(pullSecret.Type).To(Equal(corev1.SecretTypeDockerConfigJson))
	g.Expect(pullSecret.Data).To(Equal(map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)}))
	bundle := &corev1.ConfigMap{}
	w.get(t, "openshift-config", "user-ca-bundle", bundle)
	g.Expect(bundle.Data).To(Equal(map[string]string{"ca-bundle.crt": "CA"}))
	dns := &configv1.DNS{}
	w.get(t, "", "cluster", dns)
	g.Expect(dns.Spec.PublicZone).To(HaveValue(Equal(configv1.DNSZone{ID: "public"})))
	g.Expect(dns.Spec.PrivateZone).To(HaveValue(Equal(configv1.DNSZone{ID: "private"})))
	ingress, network := &configv1.Ingress{}, &configv1.Network{}
	w.get(t, "", "cluster", ingress)
	g.Expect(ingress.Spec.Domain).To(Equal("apps.demo.example.com"))
	w.get(t, "", "cluster", network)
	g.Expect(network.Spec.NetworkType).To(Equal("OVNKubernetes"))
	g.Expect(network.Spec.ClusterNetwork).To(Equal([]configv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14", HostPrefix: 23}}))
	g.Expect(network.Spec.ServiceNetwork).To(Equal([]string{"10.0.0.0/24"}))
	image, server, scheduler := &configv1.Image{}, &configv1.APIServer{}, &configv1.Scheduler{}
	w.get(t, "", "cluster", image)
	g.Expect(image.Spec.RegistrySources.InsecureRegistries).To(Equal([]string{"registry.example"}))
	w.get(t, "", "cluster", server)
	g.Expect(server.Spec.AdditionalCORSAllowedOrigins).To(Equal([]string{"console"}))
	w.get(t, "", "cluster", scheduler)
	g.Expect(scheduler.Spec.Profile).To(Equal(configv1.HighNodeUtilization))
	authentication := &configv1.Authentication{}
	w.get(t, "", "cluster", authentication)
	g.Expect(authentication.Spec.ServiceAccountIssuer).To(Equal("https://kubernetes.default.svc"))
	g.Expect(w.gone(t, renewal)).To(BeTrue(), "it let nodes without a Machine renew what they had")
	joining := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hypershift-bootstrap-tokens"}}
	g.Expect(w.gone(t, joining)).To(BeTrue(), "there is no ignition-server")

	w.change(t, func(hcp *hyperv1.HostedControlPlane) {
		hcp.Annotations = nil
		hcp.Spec.AdditionalTrustBundle = nil
		hcp.Spec.Configuration.Image, hcp.Spec.Configuration.APIServer.ServingCerts = nil, configv1.APIServerServingCerts{}
	})
	w.mustPass(t)
	g.Expect(w.gone(t, bundle)).To(BeTrue(), "what is trusted no more")
	w.get(t, "", "cluster", image)
	g.Expect(image.Spec.RegistrySources.InsecureRegistries).To(BeEmpty())
	w.get(t, "", "cluster", server)
	g.Expect(server.Spec.ServingCerts.NamedCertificates).To(BeEmpty())
	g.Expect(server.Spec.AdditionalCORSAllowedOrigins).To(Equal([]string{"console"}))
	g.Expect(w.gone(t, joining)).To(BeFalse(), "from now on machines join by tokens")

	w.change(t, func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.Configuration, hcp.Spec.IssuerURL = nil, "https://issuer.example"
	})
	w.mustPass(t)
	w.get(t, "", "cluster", authentication)
	g.Expect(authentication.Spec.ServiceAccountIssuer).To(Equal("https://issuer.example"))
	proxy := &configv1.Proxy{}
	w.get(t, "", "cluster", proxy)
	g.Expect(proxy.Spec).To(BeZero())
	g.Expect(proxy.Status.HTTPSProxy).To(BeEmpty())
	w.get(t, "", "cluster", server)
	g.Expect(server.Spec.AdditionalCORSAllowedOrigins).To(BeEmpty())
}

// TestTrouble checks failures of a reconcile: a failed object blocks none of the others, and is reported.
func TestTrouble(t *testing.T) {
	w, g := newWorld(t), NewWithT(t)
	w.r.OperateOnReleaseImage = "registry.example/another:1"
	g.Expect(w.pass(t.Context())).To(Succeed())
	g.Expect(w.writes.Count).To(BeZero(), "the guest is another operator's")

	w.r.OperateOnReleaseImage = fixture.ReleaseImage
	w.change(t, func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.PullSecret.Name = "missing" })
	g.Eventually(func(g Gomega) {
		g.Expect(w.pass(t.Context())).NotTo(Succeed())
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), hcp)).To(Succeed())
		said := meta.FindStatusCondition(hcp.Status.Conditions, string(hyperv1.ConfigOperatorReconciliationSucceeded))
		g.Expect(said).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "ReconcileError"),
			HaveField("Message", ContainSubstring("reading *v1.Secret "+namespace+"/missing")))))
		g.Expect(w.client.Get(t.Context(), client.ObjectKey{Name: "cluster"}, &configv1.Infrastructure{})).To(Succeed(), "what comes after it is done all the same")
	}).WithTimeout(timeout).Should(Succeed())
}
