// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
)

// available rolls out the control plane until it is available.
func (w *world) available() {
	w.t.Helper()
	g := NewWithT(w.t)
	g.Expect(w.pass()).To(Succeed())
	for range 4 {
		w.rollOut()
		g.Expect(w.pass()).To(Succeed())
	}
	w.guestRuns("1.36.3")
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.condition(hyperv1.HostedControlPlaneAvailable)).To(Equal("True/AsExpected"))
}

func (w *world) message(t hyperv1.ConditionType) string {
	w.t.Helper()
	return meta.FindStatusCondition(refreshed(w).Status.Conditions, string(t)).Message
}

func key(name string, content byte) *corev1.Secret {
	key := make([]byte, 32)
	key[0] = content
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"key": key}}
}

func (w *world) stage() string {
	w.t.Helper()
	live := &corev1.Secret{}
	w.get(kubeapiserver.EncryptionSecret, live)
	return live.Annotations[kubeapiserver.EncryptionStage]
}

// pods acts as the kubelets: it creates one pod of the API server that matches its Deployment.
func (w *world) pods() {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.get("kube-apiserver", d)
	if err := w.client.DeleteAllOf(w.t.Context(), &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
		w.t.Fatal(err)
	}
	w.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "kube-apiserver-", Namespace: namespace, Labels: map[string]string{"app": "kube-apiserver"}, Annotations: d.Spec.Template.Annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	})
}

func TestInvalidSpec(t *testing.T) {
	w := newWorld(t)
	g := NewWithT(t)
	for _, key := range []*corev1.Secret{key("first-key", 1), key("second-key", 2)} {
		w.create(key)
	}
	encrypt := func(name string) func(hcp *hyperv1.HostedControlPlane) {
		return func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: name}}}
		}
	}
	services := slices.Clone(w.hcp.Spec.Services)
	publish := func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: "api.example.com"}}
	}
	mend := func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Services = slices.Clone(services) }
	w.edit(publish)
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.workloads()).To(BeEmpty(), "what never had a spec that works is not begun")
	g.Expect(w.condition(hyperv1.HostedControlPlaneAvailable)).To(HavePrefix("False/"))
	g.Expect(w.message(hyperv1.HostedControlPlaneAvailable)).To(ContainSubstring("use NodePort or LoadBalancer"))

	w.edit(mend)
	w.edit(encrypt("first-key"))
	w.available()
	g.Expect(refreshed(w).Status.SecretEncryption.ActiveKey.AESCBC.Secret.Name).To(Equal("first-key"))
	w.edit(encrypt("second-key"))
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.stage()).To(Equal("ReadOnlyDeploy"))
	g.Expect(refreshed(w).Status.SecretEncryption.TargetKey.AESCBC.Secret.Name).To(Equal("second-key"))

	desired := refreshed(w).Status.VersionStatus.Desired.Image
	w.edit(func(hcp *hyperv1.HostedControlPlane) {
		publish(hcp)
		hcp.Spec.ReleaseImage = "registry.example/release:1.36.4"
	})
	leaf := &corev1.Secret{}
	w.get("kas-server-crt", leaf)
	w.clock.SetTime(w.clock.Now().Add(350 * 24 * time.Hour))
	g.Expect(w.client.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-scheduler"}})).To(Succeed())
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.message(hyperv1.ValidHostedControlPlaneConfiguration)).To(And(ContainSubstring("use NodePort or LoadBalancer"), ContainSubstring("the last valid spec stays in effect")))
	g.Expect(w.condition(hyperv1.HostedControlPlaneAvailable)).To(Equal("True/AsExpected"), "its users notice nothing")
	g.Expect(refreshed(w).Status.VersionStatus.Desired.Image).To(Equal(desired), "nobody goes to the release of a spec that cannot work")
	renewed := &corev1.Secret{}
	w.get("kas-server-crt", renewed)
	g.Expect(bytes.Equal(renewed.Data["tls.crt"], leaf.Data["tls.crt"])).To(BeFalse(), "certificates are renewed")
	for range 4 {
		w.rollOut()
		w.pods()
		g.Expect(w.pass()).To(Succeed())
	}
	scheduler := &appsv1.Deployment{}
	w.get("kube-scheduler", scheduler)
	g.Expect(scheduler.Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":1.36.3"), "what died is back, as it was")
	g.Expect(w.stage()).To(Equal("Migrating"), "the key moves on")
	before := w.writes.Count
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.writes.Count).To(Equal(before), "and then nothing is written")

	w.edit(mend)
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.condition(hyperv1.ValidHostedControlPlaneConfiguration)).To(Equal("True/AsExpected"))
	g.Expect(refreshed(w).Status.VersionStatus.Desired.Version).To(Equal("1.36.4"), "once mended all of it is taken")

	t.Run("When the control plane is paused for a year, it should only renew and load certificates", func(t *testing.T) {
		g := NewWithT(t)
		before := &appsv1.Deployment{}
		w.get("kube-scheduler", before)
		w.get("kube-scheduler-kubeconfig", leaf)
		w.edit(func(hcp *hyperv1.HostedControlPlane) {
			publish(hcp)
			hcp.Spec.PausedUntil, hcp.Spec.ReleaseImage = ptr.To("true"), "registry.example/release:1.36.3"
		})
		g.Expect(w.pass()).To(Succeed())
		writes := w.writes.Count
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.writes.Count).To(Equal(writes), "fresh certificates are left alone")
		w.clock.SetTime(w.clock.Now().Add(350 * 24 * time.Hour))
		g.Expect(w.pass()).To(Succeed())
		w.get("kube-scheduler-kubeconfig", renewed)
		g.Expect(bytes.Equal(renewed.Data["kubeconfig"], leaf.Data["kubeconfig"])).To(BeFalse())
		after := &appsv1.Deployment{}
		w.get("kube-scheduler", after)
		const hash = "component.hypershift.openshift.io/config-hash"
		g.Expect(after.Spec.Template.Annotations[hash]).NotTo(Equal(before.Spec.Template.Annotations[hash]), "the scheduler reads its kubeconfig once")
		after.Spec.Template.Annotations[hash] = before.Spec.Template.Annotations[hash]
		g.Expect(after.Spec).To(Equal(before.Spec))
		g.Expect(w.condition(hyperv1.CertificatesValid)).To(Equal("True/AsExpected"))
		w.edit(func(hcp *hyperv1.HostedControlPlane) {
			mend(hcp)
			hcp.Spec.PausedUntil = nil
		})
		g.Expect(w.pass()).To(Succeed())
	})
	t.Run("When the API Service cannot be written, it should still renew certificates", func(t *testing.T) {
		g := NewWithT(t)
		w.get("kas-server-crt", leaf)
		w.r.Infra = &infra.Reconciler{Client: refusing{w.r.Client}}
		w.clock.SetTime(w.clock.Now().Add(350 * 24 * time.Hour))
		g.Expect(w.pass()).To(MatchError(errNoServices))
		w.get("kas-server-crt", renewed)
		g.Expect(bytes.Equal(renewed.Data["tls.crt"], leaf.Data["tls.crt"])).To(BeFalse())
	})
}

// refusing is a client that fails all reads.
type refusing struct{ client.Client }

var errNoServices = errors.New("no Services today")

func (refusing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errNoServices
}

func TestRefusedProvider(t *testing.T) {
	w := newWorld(t)
	g := NewWithT(t)
	oidc := func(rule string) func(hcp *hyperv1.HostedControlPlane) {
		return func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{
				Type: configv1.AuthenticationTypeOIDC, OIDCProviders: []configv1.OIDCProvider{{
					Name: "sso", Issuer: configv1.TokenIssuer{URL: "https://sso.example.com", Audiences: []configv1.TokenAudience{"demo"}},
					ClaimMappings:       configv1.TokenClaimMappings{Username: configv1.UsernameClaimMapping{Claim: "sub"}},
					UserValidationRules: []configv1.TokenUserValidationRule{{Expression: rule, Message: "no"}},
				}},
			}}
		}
	}
	w.edit(oidc("user.username != 'root'"))
	w.available()
	served := func() string {
		cm := &corev1.ConfigMap{}
		w.get("auth-config", cm)
		return cm.Data["auth.yaml"]
	}
	g.Expect(served()).To(ContainSubstring("https://sso.example.com"))
	// Act as an older operator, which wrote the file without the rule.
	half := &corev1.ConfigMap{}
	w.get("auth-config", half)
	half.Data["auth.yaml"] = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{issuer: {url: 'https://sso.example.com'}}]\n"
	g.Expect(w.client.Update(t.Context(), half)).To(Succeed())
	w.edit(oidc("user.username !="))
	g.Expect(w.pass()).To(Succeed())
	g.Expect(served()).NotTo(ContainSubstring("sso.example.com"), "a token that the user forbade must not be let in")
	g.Expect(w.condition(hyperv1.ValidHostedControlPlaneConfiguration)).To(HavePrefix("False/"))
	g.Expect(w.message(hyperv1.ValidHostedControlPlaneConfiguration)).To(And(
		ContainSubstring("oidcProviders[0].userValidationRules[0].expression"), ContainSubstring("tokens of the provider sso are refused")))
	g.Expect(w.condition(hyperv1.HostedControlPlaneAvailable)).To(Equal("True/AsExpected"), "the administrator's kubeconfig still works")

	w.edit(oidc("user.username != 'root'"))
	g.Expect(w.pass()).To(Succeed())
	g.Expect(served()).To(ContainSubstring("https://sso.example.com"))
	g.Expect(w.condition(hyperv1.ValidHostedControlPlaneConfiguration)).To(Equal("True/AsExpected"))
}

// TestLastValidSpecOfAUser checks that a Secret that a user named last-valid-spec is not used. Version 0.1.0 copied
// such a Secret to the hosted namespace under that name, so that its spec took effect without validation.
func TestLastValidSpecOfAUser(t *testing.T) {
	for name, meta := range map[string]metav1.ObjectMeta{
		"a copy":                    {Labels: map[string]string{hyperv1.UserCopyLabel: "true"}},
		"a copy from version 0.1.0": {Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			w := newWorld(t)
			g := NewWithT(t)
			meta.Namespace, meta.Name = namespace, "last-valid-spec"
			w.create(&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"spec.json": []byte(`{"infraID":"evil"}`)}})
			g.Expect(w.pass()).To(MatchError(ContainSubstring(
				"last-valid-spec is refused: it may be a copy of an object that a user wrote")))
		})
	}
}
