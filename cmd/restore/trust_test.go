// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/bundle"
)

// refused expects that the restore fails and writes nothing.
func (w *world) refused(says string) {
	w.t.Helper()
	writes := w.cut(0, false)
	w.Expect(w.run()).To(MatchError(And(ContainSubstring(says), Not(ContainSubstring("\n")))))
	w.Expect(*writes).To(BeZero())
}

func (w *world) sum() string {
	text, err := os.ReadFile(w.options.from)
	w.Expect(err).NotTo(HaveOccurred())
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func TestTrust(t *testing.T) {
	// as creates a backup that is signed by another management cluster, or unsigned.
	as := func(t *testing.T, signedBy map[string][]byte) *world {
		t.Helper()
		w := newWorld(t, hostedCluster())
		w.signedBy = signedBy
		w.backup()
		return w
	}
	t.Run("reports for which cluster a backup is signed", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.Expect(w.run()).To(Succeed())
		w.Expect(w.said.String()).To(ContainSubstring("the backup is signed for HostedCluster clusters/demo"))
	})
	t.Run("refuses an unsigned backup, such as one of 0.1.0, if its checksum is not set", func(t *testing.T) {
		as(t, nil).refused("the backup is not signed, so its origin is unknown; give its checksum with --bundle-sha256")
	})
	t.Run("accepts an unsigned backup with its checksum", func(t *testing.T) {
		w := as(t, nil)
		w.options.sha256 = strings.ToUpper(w.sum())
		w.Expect(w.run()).To(Succeed())
	})
	t.Run("refuses a signed backup with another checksum", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.options.sha256 = strings.Repeat("0", 64)
		w.refused("the backup has the SHA-256 " + w.sum())
	})
	t.Run("refuses a backup of another management cluster", func(t *testing.T) {
		as(t, newAuthority(t)).refused("not signed by this management cluster; give its checksum with --bundle-sha256, or")
	})
	t.Run("refuses every signature if the management cluster has no key yet", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.Expect(w.client.Delete(t.Context(), w.authority)).To(Succeed())
		w.refused("not signed by this management cluster")
	})
	t.Run("accepts a backup of another management cluster with its verification key", func(t *testing.T) {
		other := newAuthority(t)
		w := as(t, other)
		w.options.verificationKey = filepath.Join(t.TempDir(), "key.pem")
		w.Expect(os.WriteFile(w.options.verificationKey, other[bundle.VerificationKey], 0o600)).To(Succeed())
		w.Expect(w.run()).To(Succeed())
		w = as(t, newAuthority(t))
		w.options.verificationKey = filepath.Join(t.TempDir(), "key.pem")
		w.Expect(os.WriteFile(w.options.verificationKey, other[bundle.VerificationKey], 0o600)).To(Succeed())
		w.refused("did not sign this backup of HostedCluster clusters/demo")
		w.Expect(os.WriteFile(w.options.verificationKey, other[bundle.AuthorityKey], 0o600)).To(Succeed())
		w.refused("not a PEM public key")
	})
	t.Run("refuses a backup that the control plane of another cluster signed", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.change = func(c *bundle.Contents) { c.Header.Name = "other" }
		w.backup()
		w.options.name = "demo"
		w.refused("not signed by this management cluster")
	})
	t.Run("refuses a backup that claims another hosted namespace", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.change = func(c *bundle.Contents) { c.Header.HostedNamespace = "clusters-other" }
		w.backup()
		w.refused("claims to be of namespace clusters-other instead of clusters-demo")
	})
}

func TestSecretsOfABackup(t *testing.T) {
	of := func(t *testing.T, change func(*bundle.Contents), objects ...client.Object) *world {
		t.Helper()
		w := newWorld(t, append(objects, hostedCluster(func(hc *hyperv1.HostedCluster) {
			hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{}}
			hc.Spec.SecretEncryption.AESCBC.ActiveKey.Name = "key"
		}))...)
		w.change = change
		w.backup()
		return w
	}
	secret := func(name string, kind corev1.SecretType) corev1.Secret {
		data := map[string][]byte{"key": []byte("k")}
		return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind, Data: data}
	}
	for name, tt := range map[string]struct {
		secret corev1.Secret
		says   string
	}{
		"of a name that is not on the list": {secret("provider-token", ""), `the backup holds Secret "provider-token"`},
		"that is a token": {
			secret("hcco-signer", corev1.SecretTypeServiceAccountToken),
			`Secret hcco-signer of type "kubernetes.io/service-account-token"`,
		},
		"that is there twice": {secret("root-ca", corev1.SecretTypeOpaque), "Secret root-ca twice"},
	} {
		t.Run("refuses a Secret "+name, func(t *testing.T) {
			of(t, func(c *bundle.Contents) { c.Secrets = append(c.Secrets, tt.secret) }).refused(tt.says)
		})
	}
	encrypted := func(c *bundle.Contents) {
		c.Secrets = append(c.Secrets, secret("users-key", corev1.SecretTypeOpaque))
		hcp := map[string]any{"apiVersion": "v1", "kind": "HostedControlPlane"}
		_ = unstructured.SetNestedField(hcp, "users-key", "spec", "secretEncryption", "aescbc", "activeKey", "name")
		c.Objects = append(c.Objects, unstructured.Unstructured{Object: hcp})
	}
	key := func(content string) client.Object {
		data := map[string][]byte{"key": []byte(content)}
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "key"}, Data: data}
	}
	t.Run("does not restore the secretEncryption key that the user already has", func(t *testing.T) {
		w := of(t, encrypted, key("k"))
		w.Expect(w.run()).To(Succeed())
		copied := client.ObjectKey{Namespace: "clusters-demo", Name: "users-key"}
		w.Expect(w.client.Get(t.Context(), copied, &corev1.Secret{})).NotTo(Succeed())
	})
	t.Run("refuses a cluster with a different secretEncryption key", func(t *testing.T) {
		of(t, encrypted, key("another")).refused(
			"no Secret that spec.secretEncryption.aescbc names has it; create the Secret again")
	})
	t.Run("restores only the data of a Secret and the record of its rotation", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.Expect(w.run()).To(Succeed())
		written := &corev1.Secret{}
		w.get("clusters-demo", "root-ca", written)
		w.Expect(written.Labels).To(BeEmpty())
		w.Expect(written.Annotations).To(BeEmpty())
		w.Expect(written.OwnerReferences).To(HaveLen(1))
		w.Expect(written.OwnerReferences[0].Kind).To(Equal("HostedControlPlane"))
		w.Expect(written.Type).To(Equal(corev1.SecretTypeOpaque))
	})
}
