// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/secrets"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/hosted"
)

// copied returns the data of a Secret's copy in the hosted namespace.
func (s *world) copied(use hosted.Use, source string) map[string]string {
	s.t.Helper()
	secret := &corev1.Secret{}
	s.get(secret, hosted.CopyName(use, source))
	data := map[string]string{}
	for key, value := range secret.Data {
		data[key] = string(value)
	}
	return data
}

func TestSecrets(t *testing.T) {
	c := fixture.Start(t)

	t.Run("When etcd has scheduled backups, it should copy the public key and credentials, but no private key", func(t *testing.T) {
		s := newWorld(t, c, "backups")
		s.start(func(hc *hyperv1.HostedCluster) {
			hc.Spec.Etcd.Managed.AutomatedBackup = &hyperv1.AutomatedEtcdBackupConfig{
				EncryptionKey: hyperv1.SecretReference{Name: "age"},
				Storage: hyperv1.AutomatedEtcdBackupStorage{Type: "S3", S3: &hyperv1.HCPEtcdBackupS3{
					Bucket: "backups", Region: "here", KeyPrefix: "demo", Credentials: hyperv1.SecretReference{Name: "s3"}}},
			}
		})
		s.user("age", map[string][]byte{"recipients": []byte("age1public"), "identity": []byte("private")})
		_, err := s.pass()
		s.Expect(err).To(MatchError(ContainSubstring("spec.etcd.managed.automatedBackup.storage.s3.credentials: there is no Secret backups/s3")))
		s.Expect(s.copied(hosted.UseBackupKey, "age")).To(Equal(map[string]string{"recipients": "age1public"}))

		s.user("s3", map[string][]byte{"credentials": []byte("mine"), "of-another-tool": []byte("x")})
		s.mustPass()
		s.Expect(s.copied(hosted.UseBackupStorage, "s3")).To(Equal(map[string]string{"credentials": "mine"}))
		source := &corev1.Secret{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "s3"}, source)).To(Succeed())
		source.Data["ca-bundle.crt"] = []byte("CA")
		s.Expect(c.Update(t.Context(), source)).To(Succeed())
		s.mustPass()
		s.Expect(s.copied(hosted.UseBackupStorage, "s3")).To(Equal(map[string]string{"credentials": "mine",
			"ca-bundle.crt": "CA"}))
		s.Expect(s.readBy(s.cluster())).To(ContainElements("age", "s3"), "else nobody would notice when they change")
	})

	t.Run("When etcd is unmanaged, it should copy its client certificate and report a missing part", func(t *testing.T) {
		s := newWorld(t, c, "own-etcd")
		s.start(func(hc *hyperv1.HostedCluster) {
			hc.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{
				Endpoint: "https://etcd.example:2379", TLS: hyperv1.EtcdTLSConfig{ClientSecret: corev1.LocalObjectReference{Name: "etcd-tls"}}}}
		})
		ca, former := clustertest.KeyPair(t), clustertest.KeyPair(t)
		s.user("etcd-tls", map[string][]byte{"etcd-client.crt": ca.CertPEM, "etcd-client.key": ca.KeyPEM})
		_, err := s.pass()
		s.Expect(err).To(MatchError(ContainSubstring(`has no key "etcd-client-ca.crt"`)))
		s.Expect(s.condition(hyperv1.UnmanagedEtcdAvailable)).To(And(HaveField("Status", metav1.ConditionFalse),
			HaveField("Reason", hyperv1.UnmanagedEtcdMisconfiguredReason), HaveField("Message", ContainSubstring("etcd-client-ca.crt"))))
		s.Expect(s.missing(&corev1.Secret{}, hosted.CopyName(hosted.UseEtcdClient, "etcd-tls"))).To(BeTrue(), "no half of it")

		source := &corev1.Secret{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "etcd-tls"}, source)).To(Succeed())
		source.Data["etcd-client-ca.crt"] = ca.CertPEM
		s.Expect(c.Update(t.Context(), source)).To(Succeed())
		s.mustPass()
		copied := map[string]string{"etcd-client.crt": string(ca.CertPEM), "etcd-client.key": string(ca.KeyPEM), "etcd-client-ca.crt": string(ca.CertPEM)}
		s.Expect(s.copied(hosted.UseEtcdClient, "etcd-tls")).To(Equal(copied))
		s.Expect(s.condition(hyperv1.UnmanagedEtcdAvailable).Status).To(Equal(metav1.ConditionTrue))

		for key, says := range map[string]string{"etcd-client.key": "the client certificate and its key cannot be used", "etcd-client-ca.crt": "the CA bundle has no certificate"} {
			good := source.Data[key]
			source.Data[key] = former.KeyPEM
			s.Expect(c.Update(t.Context(), source)).To(Succeed())
			_, err = s.pass()
			s.Expect(err).To(MatchError(ContainSubstring("the Secret own-etcd/etcd-tls: " + says)))
			s.Expect(s.condition(hyperv1.UnmanagedEtcdAvailable).Message).To(ContainSubstring(says))
			s.Expect(s.copied(hosted.UseEtcdClient, "etcd-tls")).To(Equal(copied),
				"API servers that run would end with half of another certificate")
			source.Data[key] = good
		}
		s.Expect(c.Update(t.Context(), source)).To(Succeed())
		s.mustPass()
		s.Expect(s.condition(hyperv1.UnmanagedEtcdAvailable).Status).To(Equal(metav1.ConditionTrue))
		s.Expect(s.readBy(s.cluster())).To(ContainElement("etcd-tls"))
	})

	t.Run("When a key is rotated, it should also copy the previous key, so that old Secrets stay readable", func(t *testing.T) {
		s := newWorld(t, c, "rotated-key")
		s.start(func(hc *hyperv1.HostedCluster) {
			hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{
				ActiveKey: corev1.LocalObjectReference{Name: "new"}, BackupKey: &corev1.LocalObjectReference{Name: "old"}}}
		})
		s.user("new", map[string][]byte{"key": []byte("0123456789abcdef0123456789abcdef")})
		_, err := s.pass()
		s.Expect(err).To(MatchError(ContainSubstring("spec.secretEncryption.aescbc: there is no Secret rotated-key/old")))
		s.Expect(s.missing(&hyperv1.HostedControlPlane{}, fixture.ClusterName)).To(BeTrue(), "an API server without the key could not read what there is")
		s.user("old", map[string][]byte{"key": []byte("fedcba9876543210fedcba9876543210")})
		s.mustPass()
		s.Expect(s.copied(hosted.UseEncryptionKey, "new")).To(HaveKeyWithValue("key", "0123456789abcdef0123456789abcdef"))
		s.Expect(s.copied(hosted.UseEncryptionKey, "old")).To(HaveKeyWithValue("key", "fedcba9876543210fedcba9876543210"))
	})

	t.Run("When the CLI created Secrets for the cluster, it should own those and no others", func(t *testing.T) {
		s := newWorld(t, c, "of-the-cli")
		s.start(func(hc *hyperv1.HostedCluster) { hc.Spec.InfraID = "demo-infra" })
		labelled := map[string]map[string]string{
			"made":          {hyperv1.SafeToDeleteWithClusterLabel: "true", hyperv1.AutoCreatedForInfraLabel: "demo-infra"},
			"kept":          {hyperv1.SafeToDeleteWithClusterLabel: "false", hyperv1.AutoCreatedForInfraLabel: "demo-infra"},
			"another's":     {hyperv1.SafeToDeleteWithClusterLabel: "true", hyperv1.AutoCreatedForInfraLabel: "other-infra"},
			"of-the-person": {hyperv1.AutoCreatedForInfraLabel: "demo-infra"},
		}
		names := map[string]string{}
		for name, labels := range labelled {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "cli-", Labels: labels}}
			s.Expect(c.Create(t.Context(), secret)).To(Succeed())
			names[secret.Name] = name
		}
		s.mustPass()
		secrets := &corev1.SecretList{}
		s.Expect(c.List(t.Context(), secrets, client.InNamespace(s.namespace))).To(Succeed())
		var owned []string
		for i := range secrets.Items {
			for _, owner := range secrets.Items[i].OwnerReferences {
				if name := names[secrets.Items[i].Name]; name != "" && owner.UID == s.cluster().UID {
					owned = append(owned, name)
				}
			}
		}
		s.Expect(owned).To(Equal([]string{"made"}))
	})

	t.Run("When the control plane's kubeconfig is missing or empty, it should copy no empty Secret", func(t *testing.T) {
		s := newWorld(t, c, "no-kubeconfig")
		s.start(nil)
		s.mustPass()
		hcp := s.controlPlane()
		hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}
		hcp.Status.KubeadminPassword = &corev1.LocalObjectReference{Name: "password"}
		s.Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())
		s.mustPass()
		made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "admin-kubeconfig"}, Data: map[string][]byte{"kubeconfig": {}}}
		fixture.Create(t, c, made, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "password"}})
		s.mustPass()
		for _, name := range []string{secrets.AdminKubeconfigName(s.cluster()), secrets.KubeadminPasswordName(s.cluster())} {
			err := c.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, &corev1.Secret{})
			s.Expect(err).To(HaveOccurred(), name)
			s.Expect(client.IgnoreNotFound(err)).To(Succeed())
		}
		s.Expect(s.cluster().Status).To(And(HaveField("KubeConfig", BeNil()), HaveField("KubeadminPassword", BeNil())))
	})
}
