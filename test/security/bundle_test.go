// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/hosted"
)

// forged is a backup that a tenant created: the public keys of the recipients are not secret.
type forged struct {
	file, keyFile, sum string
}

func forge(t *testing.T, secrets ...corev1.Secret) forged {
	t.Helper()
	g, dir, snapshot := NewWithT(t), t.TempDir(), []byte("snapshot")
	identity, err := age.GenerateX25519Identity()
	g.Expect(err).NotTo(HaveOccurred())
	sum := sha256.Sum256(snapshot)
	contents := bundle.Contents{
		Header: bundle.Header{
			Namespace: "clusters", Name: "demo", HostedNamespace: "clusters-demo", InfraID: "demo-x7k2p",
			Snapshot: bundle.Snapshot{Size: int64(len(snapshot)), SHA256: hex.EncodeToString(sum[:])},
		},
		Secrets: secrets,
	}
	var file bytes.Buffer
	err = bundle.Write(t.Context(), &file, contents, bytes.NewReader(snapshot), nil, identity.Recipient())
	g.Expect(err).NotTo(HaveOccurred())
	f := forged{file: filepath.Join(dir, "demo"+bundle.Extension), keyFile: filepath.Join(dir, "key.txt")}
	g.Expect(os.WriteFile(f.file, file.Bytes(), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(f.keyFile, []byte(identity.String()), 0o600)).To(Succeed())
	sum = sha256.Sum256(file.Bytes())
	f.sum = hex.EncodeToString(sum[:])
	return f
}

// TestForgedBackup checks that a bundle that a tenant puts into the backup store is not restored, and that no Secret of
// its choice is written.
func TestForgedBackup(t *testing.T) {
	secret := func(name string, kind corev1.SecretType) corev1.Secret {
		labels := map[string]string{"cluster.x-k8s.io/cluster-name": "demo-x7k2p"}
		return corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Type: kind,
			Data: map[string][]byte{"value": []byte("kubeconfig")},
		}
	}
	const opaque = corev1.SecretTypeOpaque
	for name, tt := range map[string]struct {
		secret  corev1.Secret
		checked bool
		says    string
	}{
		"is refused without a signature": {secret(hosted.RootCA, opaque), false, "--bundle-sha256"},
		"is refused with a kubeconfig of Cluster API": {secret("demo-x7k2p-kubeconfig", opaque), true,
			`"demo-x7k2p-kubeconfig"`},
		"is refused with a token of a service account": {secret(hosted.EtcdSigner,
			corev1.SecretTypeServiceAccountToken), true, "-token"},
		"is refused with a Secret of credentials": {secret("kubevirt-infra-credentials", opaque), true,
			"kubevirt-infra-"},
		"is refused with a signer of backups":               {secret(hosted.BackupSigner, opaque), true, hosted.BackupSigner},
		"is refused with a name that leads out of a folder": {secret("../root-ca", opaque), true, "../root-ca"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			backup := forge(t, tt.secret)
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
			hc.Annotations = map[string]string{hyperv1.RestoringAnnotation: "true"}
			hc.Spec.InfraID = "demo-x7k2p"
			management := kubetest.Start(t, append(kubetest.Hosted(client.ObjectKeyFromObject(hc), nil), hc)...)
			args := []string{"restore", "cluster", "--from", backup.file, "--key-file", backup.keyFile, "--timeout", "10ms"}
			if tt.checked {
				args = append(args, "--bundle-sha256", backup.sum)
			}
			g.Expect(runCLI(t, management, args...)).To(ContainSubstring(tt.says))
			g.Expect(management.Writes()).To(BeEmpty())
		})
	}
}

// TestSignerOfBackups checks that each control plane has its own key, and that none has the key that certifies it.
func TestSignerOfBackups(t *testing.T) {
	o := newOperator(t, "signers")
	fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), fixture.HostedCluster(o.tenant))...)
	_, _ = o.pass()
	_, _ = o.pass()
	authority, signer := &corev1.Secret{}, &corev1.Secret{}
	key := client.ObjectKey{Namespace: fixture.OperatorNamespace, Name: hosted.BackupAuthority}
	o.Expect(o.client.Get(t.Context(), key, authority)).To(Succeed())
	o.read(signer, hosted.BackupSigner)
	certifies, err := bundle.ReadAuthority(authority.Data)
	o.Expect(err).NotTo(HaveOccurred())
	cluster := o.tenant + "/" + fixture.ClusterName
	o.Expect(certifies.Issued(cluster, signer.Data)).To(BeTrue())
	o.Expect(signer.Data).NotTo(HaveKey(bundle.AuthorityKey))
	t.Run("is kept when it belongs to the cluster", func(t *testing.T) {
		before := signer.DeepCopy()
		_, _ = o.pass()
		o.read(signer, hosted.BackupSigner)
		o.Expect(signer.Data).To(Equal(before.Data))
	})
	t.Run("is replaced when another management cluster certified it", func(t *testing.T) {
		other, err := bundle.NewAuthority()
		o.Expect(err).NotTo(HaveOccurred())
		certifies, err := bundle.ReadAuthority(other)
		o.Expect(err).NotTo(HaveOccurred())
		signer.Data, err = certifies.Issue(cluster)
		o.Expect(err).NotTo(HaveOccurred())
		o.Expect(o.client.Update(t.Context(), signer)).To(Succeed())
		_, _ = o.pass()
		o.read(signer, hosted.BackupSigner)
		o.Expect(certifies.Issued(cluster, signer.Data)).To(BeFalse())
	})
}
