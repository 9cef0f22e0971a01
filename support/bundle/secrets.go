// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/pki"
)

// restored lists the Secrets of a hosted namespace that a restorer writes, with their types. Leaf certificates and
// kubeconfigs are regenerated from the CAs. The writer and the restorer share this list. A bundle of this product has
// no Secret with another name or type.
var restored = map[string]corev1.SecretType{
	hosted.RootCA:              corev1.SecretTypeOpaque,
	hosted.ClusterSignerCA:     corev1.SecretTypeOpaque,
	hosted.EtcdSigner:          corev1.SecretTypeOpaque,
	hosted.EtcdMetricsSigner:   corev1.SecretTypeOpaque,
	hosted.AggregatorSigner:    corev1.SecretTypeOpaque,
	hosted.ControlPlaneSigner:  corev1.SecretTypeOpaque,
	hosted.KubeletClientSigner: corev1.SecretTypeOpaque,
	hosted.SystemAdminSigner:   corev1.SecretTypeOpaque,
	hosted.ConfigOperatorCA:    corev1.SecretTypeOpaque,
	hosted.IgnitionServerCA:    corev1.SecretTypeOpaque,
	hosted.ServiceAccountKey:   corev1.SecretTypeOpaque,
}

// Restored reports whether a restorer writes the Secret with this name.
func Restored(name string) bool {
	_, ok := restored[name]
	return ok
}

// Of returns the part of a Secret that a bundle keeps: its data, and the rotation state of a signer. Labels, owners and
// other annotations have effects in a management cluster, so the bundle does not keep them.
func Of(secret *corev1.Secret) corev1.Secret {
	return corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: secret.Name, Annotations: pki.RotationRecord(secret.Annotations)},
		Type:       secret.Type, Data: secret.Data,
	}
}

// unexpectedError reports a bundle with an item that no bundle of this product has.
type unexpectedError struct{ what string }

// Error names the unexpected item.
func (e *unexpectedError) Error() string {
	return "the backup holds " + e.what + ", which a backup of this product does not; take another backup"
}

// Restorable returns the Secrets of a bundle as a restorer writes them into a namespace. They have only their data and
// the rotation record. Restorable returns an error for a Secret that this package does not list, except those of
// EncryptionKeys, which it omits.
func (c Contents) Restorable(namespace string) ([]corev1.Secret, error) {
	var all []corev1.Secret
	keys := c.EncryptionKeys()
	for i := range c.Secrets {
		secret := &c.Secrets[i]
		kind, listed := restored[secret.Name]
		switch {
		case !listed && slices.Contains(keys, secret.Name):
			continue
		case !listed:
			return nil, &unexpectedError{fmt.Sprintf("Secret %q", secret.Name)}
		case secret.Type != "" && secret.Type != kind:
			return nil, &unexpectedError{fmt.Sprintf("Secret %s of type %q", secret.Name, secret.Type)}
		case slices.ContainsFunc(all, func(other corev1.Secret) bool { return other.Name == secret.Name }):
			return nil, &unexpectedError{fmt.Sprintf("Secret %s twice", secret.Name)}
		}
		fresh := Of(secret)
		fresh.Namespace, fresh.Type = namespace, kind
		all = append(all, fresh)
	}
	return all, nil
}

// EncryptionKeys returns the names of the Secrets in the bundle with the keys that encrypt Secrets in etcd, the active
// one first. The user has these Secrets too. A restorer compares them and does not write them.
func (c Contents) EncryptionKeys() []string {
	var names []string
	for i := range c.Objects {
		if c.Objects[i].GetKind() != "HostedControlPlane" {
			continue
		}
		for _, key := range []string{"activeKey", "backupKey"} {
			path := []string{"spec", "secretEncryption", "aescbc", key, "name"}
			name, _, err := unstructured.NestedString(c.Objects[i].Object, path...)
			if err == nil && name != "" && !Restored(name) {
				names = append(names, name)
			}
		}
		break
	}
	return names
}
