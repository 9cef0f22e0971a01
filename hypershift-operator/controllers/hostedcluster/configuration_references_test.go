// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
)

// asking is a configuration whose API server asks the webhook of a Secret, serves with the certificates of others and trusts a CA.
func asking(hook, ca string, certificates ...string) *hyperv1.ClusterConfiguration {
	c := &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{ClientCA: configv1.ConfigMapNameReference{Name: ca}}}
	if hook != "" {
		c.Authentication = &configv1.AuthenticationSpec{WebhookTokenAuthenticator: &configv1.WebhookTokenAuthenticator{KubeConfig: configv1.SecretNameReference{Name: hook}}}
	}
	for _, name := range certificates {
		c.APIServer.ServingCerts.NamedCertificates = append(c.APIServer.ServingCerts.NamedCertificates,
			configv1.APIServerNamedServingCert{ServingCertificate: configv1.SecretNameReference{Name: name}})
	}
	return c
}

// beside is a Secret of the user, beside the cluster.
func beside(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}, Type: "test/type", Data: map[string][]byte{key: []byte(value)}}
}

// kubeconfigOf is one that leads to a server, as a user of these settings.
func kubeconfigOf(user string) string {
	return `{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
		"clusters":[{"name":"a","cluster":{"server":"https://hook.example"}}],"users":[{"name":"a","user":` + user + `}]}`
}

func TestConfigurationIsCopied(t *testing.T) {
	ca := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "ca"}, Data: map[string]string{"ca.crt": "a"}, BinaryData: map[string][]byte{"b": []byte("b")}}
	g, s := NewWithT(t), withScope()
	d := newDesk(beside("hook", "kubeConfig", kubeconfigOf(`{"token":"t"}`)), beside("cert", "tls.crt", "c"), ca)
	s.hc.Spec.Configuration = asking("hook", "ca", "cert")
	_, err := d.reconcileConfigRefs(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	for name, key := range map[string]string{"hook": "kubeConfig", "cert": "tls.crt"} {
		secret, source := s.secret(name), beside(name, "", "")
		g.Expect(d.has(t, secret) && d.has(t, source)).To(BeTrue(), name)
		g.Expect(secret.Data).To(And(Equal(source.Data), HaveKey(key)))
		g.Expect(string(secret.Type)).To(Equal("test/type"))
		g.Expect(secret.Annotations).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"))
	}
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "ca"}}
	g.Expect(d.has(t, copied)).To(BeTrue())
	g.Expect(copied.Data).To(Equal(ca.Data))
	g.Expect(copied.BinaryData).To(Equal(ca.BinaryData))
	g.Expect(copied.Annotations).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"))

	t.Run("When a Secret changes, its copy should follow, and keep its type, which cannot change", func(t *testing.T) {
		g, secret := NewWithT(t), s.secret("cert")
		g.Expect(d.has(t, secret)).To(BeTrue())
		secret.Type = "test/other"
		g.Expect(d.server.Update(t.Context(), secret)).To(Succeed())
		source := beside("cert", "", "")
		g.Expect(d.has(t, source)).To(BeTrue())
		source.Data = map[string][]byte{"tls.crt": []byte("new")}
		g.Expect(d.server.Update(t.Context(), source)).To(Succeed())
		_, err := d.reconcileConfigRefs(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.has(t, secret)).To(BeTrue())
		g.Expect(secret.Data).To(Equal(source.Data))
		g.Expect(string(secret.Type)).To(Equal("test/other"))
	})
}

func TestConfigurationIsRefused(t *testing.T) {
	stranger := &metav1.ObjectMeta{Namespace: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "others/demo"}}
	at := func(name string) metav1.ObjectMeta {
		meta := stranger.DeepCopy()
		meta.Name = name
		return *meta
	}
	config := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}}
	}
	for name, tc := range map[string]struct {
		hook, ca, cert, trust string
		want                  []string
	}{
		"When its webhook would run a program, it should be refused, and the others be looked at": {"program", "", "missing", "",
			[]string{"authentication.webhookTokenAuthenticator.kubeConfig: the Secret clusters/program", "there is no Secret clusters/missing"}},
		"When its webhook's Secret has another key, it should be refused": {"keyless", "", "", "", []string{`has no key "kubeConfig"`}},
		"When a Secret has a name that is taken, it should be refused":    {"", "", naming.PullSecret, "", []string{"the Secret clusters/" + naming.PullSecret + " has the name of one"}},
		"When a Secret of the name is another's, it should be left":       {"", "", "theirs", "", []string{"HostedCluster others/demo"}},
		"When a ConfigMap of the name is another's, it should be left":    {"", "theirs", "", "", []string{"HostedCluster others/demo"}},
		"When a ConfigMap is missing, it should say so":                   {"", "missing", "", "", []string{"spec.configuration: ", "there is no ConfigMap clusters/missing"}},
		"When it would take the trust bundle's place, it should not":      {"", naming.TrustBundle, "", "other", []string{"spec.additionalTrustBundle other"}},
		"When it is the trust bundle, it should be there as that":         {"", naming.TrustBundle, "", naming.TrustBundle, nil},
		"When there is no trust bundle, it should have its place":         {"", naming.TrustBundle, "", "", nil},
		"When the trust bundle has another name, it should be copied":     {"", "fine", "", "other", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), withScope()
			d := newDesk(beside("program", "kubeConfig", kubeconfigOf(`{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"sh","interactiveMode":"Never"}}`)),
				beside("keyless", "x", "y"), beside("theirs", "x", "y"), beside(naming.PullSecret, "x", "y"), config("theirs"), config(naming.TrustBundle), config("fine"),
				&corev1.Secret{ObjectMeta: at("theirs")}, &corev1.ConfigMap{ObjectMeta: at("theirs")})
			s.hc.Spec.Configuration = asking(tc.hook, tc.ca, tc.cert)
			s.hc.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: tc.trust}
			_, err := d.reconcileConfigRefs(t.Context(), s)
			for _, want := range tc.want {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			}
			if tc.want == nil {
				g.Expect(err).NotTo(HaveOccurred())
			}
			copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: tc.ca}}
			g.Expect(tc.want == nil && tc.trust != tc.ca).To(Equal(d.has(t, copied) && copied.Annotations[hyperv1.HostedClusterAnnotation] == "clusters/demo"))
			g.Expect(d.has(t, s.secret("program"))).To(BeFalse(), "nothing of it may come to where its operators read it")
			g.Expect(d.has(t, s.secret("keyless"))).To(BeFalse())
		})
	}
}

func TestTokenWebhook(t *testing.T) {
	g := NewWithT(t)
	g.Expect(tokenWebhook(nil)).To(BeEmpty())
	g.Expect(tokenWebhook(&hyperv1.ClusterConfiguration{})).To(BeEmpty())
	g.Expect(tokenWebhook(&hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{}})).To(BeEmpty())
	g.Expect(tokenWebhook(asking("hook", ""))).To(Equal("hook"))
}
