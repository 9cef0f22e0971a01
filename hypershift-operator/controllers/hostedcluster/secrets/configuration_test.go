// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/hosted"
)

// beside returns a user's Secret in the namespace of the cluster.
func beside(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}, Type: "test/type", Data: map[string][]byte{key: []byte(value)}}
}

func TestConfigurationIsCopied(t *testing.T) {
	ca := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "ca"}, Data: map[string]string{"ca.crt": "a"}, BinaryData: map[string][]byte{"b": []byte("b")}}
	g, s := NewWithT(t), clustertest.Scope()
	d := newServer(beside("hook", "kubeConfig", clustertest.WebhookKubeconfig(`{"token":"t"}`)), beside("cert", "tls.crt", "c"), ca)
	s.HC.Spec.Configuration = clustertest.Configuration("hook", "ca", "cert")
	_, err := Configuration{d.Copier}.Reconcile(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	for name, key := range map[string]string{"hook": "kubeConfig", "cert": "tls.crt"} {
		use := hosted.UseConfiguration
		if name == "hook" {
			use = hosted.UseTokenWebhook
		}
		secret, source := s.Secret(hosted.CopyName(use, name)), beside(name, "", "")
		g.Expect(d.Has(t, secret) && d.Has(t, source)).To(BeTrue(), name)
		g.Expect(secret.Data).To(And(Equal(source.Data), HaveKey(key)))
		g.Expect(string(secret.Type)).To(Equal("test/type"))
		g.Expect(secret.Annotations).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"))
	}
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace,
		Name: hosted.CopyName(hosted.UseConfiguration, "ca")}}
	g.Expect(d.Has(t, copied)).To(BeTrue())
	g.Expect(copied.Data).To(Equal(ca.Data))
	g.Expect(copied.BinaryData).To(Equal(ca.BinaryData))
	g.Expect(copied.Annotations).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"))

	t.Run("When a Secret changes, its copy should get the new data and keep its immutable type", func(t *testing.T) {
		g, secret := NewWithT(t), s.Secret(hosted.CopyName(hosted.UseConfiguration, "cert"))
		g.Expect(d.Has(t, secret)).To(BeTrue())
		secret.Type = "test/other"
		g.Expect(d.Direct.Update(t.Context(), secret)).To(Succeed())
		source := beside("cert", "", "")
		g.Expect(d.Has(t, source)).To(BeTrue())
		source.Data = map[string][]byte{"tls.crt": []byte("new")}
		g.Expect(d.Direct.Update(t.Context(), source)).To(Succeed())
		_, err := Configuration{d.Copier}.Reconcile(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Has(t, secret)).To(BeTrue())
		g.Expect(secret.Data).To(Equal(source.Data))
		g.Expect(string(secret.Type)).To(Equal("test/other"))
	})
}

func TestConfigurationIsRefused(t *testing.T) {
	theirs := metav1.ObjectMeta{Namespace: "clusters-demo", Name: hosted.CopyName(hosted.UseConfiguration, "theirs"),
		Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "others/demo"}}
	config := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}}
	}
	for name, tc := range map[string]struct {
		hook, ca, cert string
		want           []string
	}{
		"a webhook kubeconfig that runs a command is rejected, and the other references are copied": {"program", "", "missing",
			[]string{"authentication.webhookTokenAuthenticator.kubeConfig: the Secret clusters/program", "there is no Secret clusters/missing"}},
		"a webhook whose Secret lacks the key is rejected":       {"keyless", "", "", []string{`has no key "kubeConfig"`}},
		"a Secret copy of another cluster is not overwritten":    {"", "", "theirs", []string{"HostedCluster others/demo"}},
		"a ConfigMap copy of another cluster is not overwritten": {"", "theirs", "", []string{"HostedCluster others/demo"}},
		"a missing ConfigMap is named": {"", "missing", "",
			[]string{"spec.configuration: ", "there is no ConfigMap clusters/missing"}},
		"a reference may have the name of the pull secret":  {"", "", naming.PullSecret, nil},
		"a reference may have the name of the trust bundle": {"", naming.TrustBundle, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), clustertest.Scope()
			d := newServer(beside("program", "kubeConfig", clustertest.WebhookKubeconfig(`{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"sh","interactiveMode":"Never"}}`)),
				beside("keyless", "x", "y"), beside("theirs", "x", "y"), beside(naming.PullSecret, "x", "y"), config("theirs"),
				config(naming.TrustBundle),
				&corev1.Secret{ObjectMeta: theirs}, &corev1.ConfigMap{ObjectMeta: theirs})
			s.HC.Spec.Configuration = clustertest.Configuration(tc.hook, tc.ca, tc.cert)
			_, err := Configuration{d.Copier}.Reconcile(t.Context(), s)
			for _, want := range tc.want {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			}
			if tc.want == nil {
				g.Expect(err).NotTo(HaveOccurred())
			}
			for _, name := range []string{"program", "keyless"} {
				g.Expect(d.Has(t, s.Secret(hosted.CopyName(hosted.UseTokenWebhook, name)))).To(BeFalse(),
					"a webhook that is refused must not be copied")
			}
			g.Expect(d.Has(t, s.Secret(naming.PullSecret))).To(BeFalse())
			g.Expect(d.Has(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace,
				Name: naming.TrustBundle}})).To(BeFalse())
		})
	}
	t.Run("a kubeconfig that is rejected for one use is not copied under the name of another use", func(t *testing.T) {
		g, s := NewWithT(t), clustertest.Scope()
		program := beside("program", "webhook-kubeconfig",
			clustertest.WebhookKubeconfig(`{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"sh","interactiveMode":"Never"}}`))
		d := newServer(program)
		s.HC.Spec.Configuration = clustertest.Configuration("", "", "program")
		s.HC.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "program"}
		_, err := AuditWebhook{d.Copier}.Reconcile(t.Context(), s)
		g.Expect(err).To(HaveOccurred())
		_, err = Configuration{d.Copier}.Reconcile(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Has(t, s.Secret(hosted.CopyName(hosted.UseAuditWebhook, "program")))).To(BeFalse())
	})
}
