// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/maas"
)

// start creates a cluster and reconciles it.
func (s *world) start(mutate func(*hyperv1.HostedCluster)) {
	s.t.Helper()
	hc := fixture.HostedCluster(s.namespace)
	if mutate != nil {
		mutate(hc)
	}
	fixture.Create(s.t, s.client, append(fixture.Inputs(s.namespace), hc)...)
}

func (s *world) missing(obj client.Object, name string) bool {
	s.t.Helper()
	err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: name}, obj)
	s.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return apierrors.IsNotFound(err)
}

// change updates the cluster's spec.
func (s *world) change(mutate func(*hyperv1.HostedCluster)) {
	s.t.Helper()
	hc := s.cluster()
	mutate(hc)
	s.Expect(s.client.Update(s.t.Context(), hc)).To(Succeed())
}

func (s *world) user(name string, data map[string][]byte) {
	s.t.Helper()
	fixture.Create(s.t, s.client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Data: data})
}

func TestFlows(t *testing.T) {
	c := fixture.Start(t)

	t.Run("When MAAS rejects the API key, it should report that and still create the control plane", func(t *testing.T) {
		s := newWorld(t, c, "wrong-key")
		s.Platforms = fixture.Platforms(func(context.Context, maas.Config) (string, error) {
			return "", &maas.Error{Operation: "check the API key", StatusCode: 401}
		})
		s.start(nil)
		s.mustPass()
		s.Expect(s.condition(hyperv1.PlatformCredentialsFound).Reason).To(Equal("MAASUnauthorized"))
		s.Expect(s.condition(hyperv1.PlatformCredentialsFound).Message).To(ContainSubstring("MAAS_API_KEY of Secret wrong-key/demo-maas-credentials"))
		s.get(&hyperv1.HostedControlPlane{}, fixture.ClusterName)
		s.get(&appsv1.Deployment{}, "control-plane-operator")
	})

	t.Run("When the release image does not exist, it should report that and retry", func(t *testing.T) {
		s := newWorld(t, c, "no-release")
		s.start(func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = "registry.example/none:1" })
		result, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(result.RequeueAfter).To(BeNumerically("<=", releaseRetry))
		s.Expect(s.condition(hyperv1.ValidReleaseImage).Reason).To(Equal("InvalidImage"))
		s.Expect(s.condition(hyperv1.HostedClusterAvailable).Message).To(ContainSubstring("registry.example/none:1"))
		s.Expect(s.missing(&hyperv1.HostedControlPlane{}, fixture.ClusterName)).To(BeTrue())
		s.get(&corev1.Secret{}, "pull-secret")
	})

	t.Run("When the pull secret is missing, it should name the Secret", func(t *testing.T) {
		s := newWorld(t, c, "no-pull-secret")
		s.start(func(hc *hyperv1.HostedCluster) { hc.Spec.PullSecret.Name = "gone" })
		_, err := s.pass()
		s.Expect(err).To(MatchError(ContainSubstring("there is no Secret no-pull-secret/gone: create it")))
		s.Expect(s.condition(hyperv1.ValidReleaseImage).Reason).To(Equal("SecretNotFound"))
		s.Expect(s.condition(hyperv1.ReconciliationSucceeded).Reason).To(Equal("ReconciliationError"))
	})

	t.Run("When an optional input is missing, it should still reconcile the rest", func(t *testing.T) {
		s := newWorld(t, c, "no-ssh")
		s.start(func(hc *hyperv1.HostedCluster) { hc.Spec.SSHKey.Name = "gone" })
		_, err := s.pass()
		s.Expect(err).To(MatchError(And(ContainSubstring("SSH key"), ContainSubstring("no-ssh/gone"))))
		s.get(&appsv1.Deployment{}, "control-plane-operator")
	})

	t.Run("When the platform has no plugin, it should name the known platforms", func(t *testing.T) {
		s := newWorld(t, c, "no-plugin")
		s.Platforms = registry.Of(map[hyperv1.PlatformType]platform.Platform{hyperv1.NonePlatform: &none.Platform{}})
		s.start(func(hc *hyperv1.HostedCluster) {
			hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform}
		})
		s.mustPass()
		s.Expect(s.condition(hyperv1.SupportedHostedCluster).Reason).To(Equal("UnsupportedHostedCluster"))
		s.Expect(s.condition(hyperv1.SupportedHostedCluster).Message).To(ContainSubstring("[None]"))
		s.Expect(c.Delete(t.Context(), s.cluster())).To(Succeed())
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(apierrors.IsNotFound(c.Get(t.Context(), s.request().NamespacedName, &hyperv1.HostedCluster{}))).To(BeTrue())
	})

	t.Run("When the platform is None, it should host the control plane without Cluster API", func(t *testing.T) {
		s := newWorld(t, c, "none")
		s.start(func(hc *hyperv1.HostedCluster) { hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.NonePlatform} })
		s.mustPass()
		s.serve()
		s.mustPass()
		s.Expect(s.condition(hyperv1.HostedClusterAvailable).Status).To(Equal(metav1.ConditionTrue))
		s.Expect(s.missing(&appsv1.Deployment{}, "cluster-api")).To(BeTrue())
		s.Expect(s.missing(&clusterv1.Cluster{}, s.cluster().Spec.InfraID)).To(BeTrue())
	})

	t.Run("When machine management is disabled later, it should keep the managers and not wait for them", func(t *testing.T) {
		s := newWorld(t, c, "disabled-later")
		s.up()
		s.change(func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.DisableMachineManagement: ""}
		})
		s.mustPass()
		for _, name := range []string{capiManagerName, capiProviderName} {
			live := &appsv1.Deployment{}
			s.get(live, name)
			s.Expect(live.DeletionTimestamp).To(BeNil())
			s.Expect(s.missing(&hyperv1.ControlPlaneComponent{}, name)).To(BeTrue())
		}
	})

	t.Run("When the cluster is paused, it should pause its objects until the pause ends", func(t *testing.T) {
		s := newWorld(t, c, "pause")
		s.start(nil)
		s.mustPass()
		s.serve()
		s.mustPass()
		s.change(func(hc *hyperv1.HostedCluster) { hc.Spec.PausedUntil = ptr.To("2026-11-20T12:30:00Z") })
		result, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(result.RequeueAfter.Minutes()).To(BeEquivalentTo(30))
		s.Expect(s.condition(hyperv1.ReconciliationActive).Status).To(Equal(metav1.ConditionFalse))
		s.Expect(s.condition(hyperv1.HostedClusterAvailable).Status).To(Equal(metav1.ConditionTrue))
		cluster := &clusterv1.Cluster{}
		s.get(cluster, s.cluster().Spec.InfraID)
		s.Expect(cluster.Spec.Paused).To(HaveValue(BeTrue()))
		s.clock.Step(31 * 60 * 1e9)
		s.mustPass()
		s.get(cluster, s.cluster().Spec.InfraID)
		s.Expect(cluster.Spec.Paused).To(HaveValue(BeFalse()))
	})

	t.Run("When the spec references keys and Secrets, it should copy all of them", func(t *testing.T) {
		s := newWorld(t, c, "copies")
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		s.Expect(err).NotTo(HaveOccurred())
		private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
		s.start(func(hc *hyperv1.HostedCluster) {
			hc.Spec.IssuerURL = "https://issuer.example"
			hc.Spec.ServiceAccountSigningKey = &corev1.LocalObjectReference{Name: "sa"}
			hc.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "audit"}
			hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "active"}}}
			hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{TrustedCA: configv1.ConfigMapNameReference{Name: "proxy-ca"}}}
		})
		s.user("sa", map[string][]byte{"key": private, "old-key.pub": []byte("OLD")})
		s.user("audit", map[string][]byte{"webhook-kubeconfig": []byte(auditKubeconfig)})
		s.user("active", map[string][]byte{"key": []byte("0123456789abcdef0123456789abcdef")})
		fixture.Create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "proxy-ca"}, Data: map[string]string{"ca-bundle.crt": "CA"}})
		s.mustPass()
		signing := &corev1.Secret{}
		s.get(signing, "sa-signing-key")
		s.Expect(signing.Data["service-account.key"]).To(Equal(private))
		s.Expect(string(signing.Data["service-account.pub"])).To(And(HavePrefix("-----BEGIN PUBLIC KEY-----"), HaveSuffix("OLD")))
		s.get(&corev1.Secret{}, hosted.CopyName(hosted.UseAuditWebhook, "audit"))
		s.get(&corev1.Secret{}, hosted.CopyName(hosted.UseEncryptionKey, "active"))
		s.get(&corev1.ConfigMap{}, hosted.CopyName(hosted.UseConfiguration, "proxy-ca"))
		s.Expect(s.condition(hyperv1.ValidProxyConfiguration).Reason).To(Equal("ProxyCABundleInvalid"))
		s.Expect(s.condition(hyperv1.ValidProxyConfiguration).Message).To(ContainSubstring("holds no PEM certificate"))
	})

	t.Run("When a KMS plugin is set, it should copy all keys of its credentials and name a missing Secret", func(t *testing.T) {
		s := newWorld(t, c, "plugin")
		s.start(func(hc *hyperv1.HostedCluster) {
			hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.KMSPlugin,
				Plugin: &hyperv1.KMSPluginSpec{Name: "vault", Image: "registry.example/vault:1", Credentials: &corev1.LocalObjectReference{Name: "vault"}}}}
		})
		_, err := s.pass()
		s.Expect(err).To(MatchError(ContainSubstring("spec.secretEncryption.kms.plugin.credentials: there is no Secret")))
		s.user("vault", map[string][]byte{"config.hcl": []byte("a"), "token": []byte("b")})
		s.mustPass()
		s.Expect(s.copied(hosted.UseKMSCredentials, "vault")).To(Equal(map[string]string{"config.hcl": "a", "token": "b"}))
		hcp := &hyperv1.HostedControlPlane{}
		s.get(hcp, s.cluster().Name)
		s.Expect(hcp.Spec.SecretEncryption.KMS.Plugin.Name).To(Equal("vault"))
	})

	t.Run("When a reference is removed from the spec, its copy should be deleted", func(t *testing.T) {
		s := newWorld(t, c, "copies")
		s.change(func(hc *hyperv1.HostedCluster) {
			hc.Spec.SSHKey = corev1.LocalObjectReference{}
			hc.Spec.AdditionalTrustBundle = nil
		})
		s.mustPass()
		s.Expect(s.missing(&corev1.Secret{}, "ssh-key")).To(BeTrue())
		s.Expect(s.missing(&corev1.ConfigMap{}, "user-ca-bundle")).To(BeTrue())
	})

	t.Run("When an annotation is meant for the control plane, it should be copied to the control plane", func(t *testing.T) {
		s := newWorld(t, c, "copies")
		s.change(func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{
				hyperv1.DisableProfilingAnnotation: "kube-apiserver", hyperv1.RestartDateAnnotation: "now", "mine": "not for it",
				hyperv1.ResourceRequestOverrideAnnotationPrefix + "/etcd.etcd": "cpu=1",
			}
		})
		s.mustPass()
		hcp := &hyperv1.HostedControlPlane{}
		s.get(hcp, fixture.ClusterName)
		s.Expect(hcp.Annotations).To(And(HaveKeyWithValue(hyperv1.DisableProfilingAnnotation, "kube-apiserver"),
			HaveKeyWithValue(hyperv1.RestartDateAnnotation, "now"), HaveKeyWithValue(hyperv1.ResourceRequestOverrideAnnotationPrefix+"/etcd.etcd", "cpu=1"),
			Not(HaveKey("mine"))))

		// Another writer requests a restart; the cluster's old request must not overwrite it.
		hcp.Annotations[hyperv1.RestartDateAnnotation] = "later"
		s.Expect(c.Update(t.Context(), hcp)).To(Succeed())
		s.change(func(hc *hyperv1.HostedCluster) { delete(hc.Annotations, hyperv1.DisableProfilingAnnotation) })
		s.mustPass()
		s.get(hcp, fixture.ClusterName)
		s.Expect(hcp.Annotations).To(And(HaveKeyWithValue(hyperv1.RestartDateAnnotation, "later"), Not(HaveKey(hyperv1.DisableProfilingAnnotation))))
	})

	t.Run("When the namespace belongs to another cluster, it should refuse to share it", func(t *testing.T) {
		s := newWorld(t, c, "taken")
		fixture.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.hosted(), Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "a/b"}}})
		s.start(nil)
		_, err := s.pass()
		s.Expect(err).To(MatchError(ContainSubstring("belongs to HostedCluster a/b already")))
		s.Expect(c.Delete(t.Context(), s.cluster())).To(Succeed())
		_, err = s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		namespace := &corev1.Namespace{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Name: s.hosted()}, namespace)).To(Succeed())
		s.Expect(namespace.DeletionTimestamp).To(BeNil(), "it is not ours to delete")
	})

	t.Run("When two clusters are hosted, each should get its own user ID", func(t *testing.T) {
		s := newWorld(t, c, "uid-a")
		uid := func(namespace string) string {
			n := &corev1.Namespace{}
			s.Expect(c.Get(t.Context(), client.ObjectKey{Name: namespace}, n)).To(Succeed())
			return n.Annotations[hyperv1.DefaultSecurityContextUIDAnnotation]
		}
		s.start(nil)
		s.mustPass()
		s.Expect(uid(s.hosted())).NotTo(BeEmpty())
		s.Expect(uid(s.hosted())).NotTo(Equal(uid(fixture.Hosted("copies"))))
	})

	t.Run("When a service is no longer published by NodePort, its NetworkPolicy should be deleted", func(t *testing.T) {
		s := newWorld(t, c, "uid-a")
		s.get(&networkingv1.NetworkPolicy{}, "nodeport-ignition")
		scope := newScope(s.cluster())
		scope.HC.Spec.Services = nil
		scope.Release = fixture.Payloads()[fixture.ReleaseImage]
		_, err := s.networkPolicies(scope).Reconcile(t.Context(), scope.Scope)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.missing(&networkingv1.NetworkPolicy{}, "nodeport-ignition")).To(BeTrue())
	})

	t.Run("When the platform is AWS without its block, the operator should reject the cluster, not the API server", func(t *testing.T) {
		s := newWorld(t, c, "aws")
		s.start(func(hc *hyperv1.HostedCluster) { hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform} })
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.condition(hyperv1.ValidHostedClusterConfiguration).Message).To(ContainSubstring("spec.platform.aws is missing"))
		s.Expect(s.missing(&hyperv1.HostedControlPlane{}, fixture.ClusterName)).To(BeTrue())
	})

	disruptions(t, c)
}

// auditKubeconfig connects to a server without using files of the API server's pod.
const auditKubeconfig = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
  clusters: [{name: c, cluster: {server: "https://audit.example"}}]}`
