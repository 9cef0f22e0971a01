// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/reference"
)

// putKeys writes the Secrets of the backup into the hosted namespace. It does not overwrite an existing Secret with
// other content.
func (r *restoring) putKeys(ctx context.Context) error {
	hcp := &hyperv1.HostedControlPlane{}
	name := client.ObjectKey{Namespace: r.hostedNamespace(), Name: r.cluster.Name}
	if err := r.client.Get(ctx, name, hcp); err != nil {
		return fmt.Errorf("read HostedControlPlane %s: %w", name, err)
	}
	for i := range r.secrets {
		secret := r.secrets[i].DeepCopy()
		secret.Namespace = r.hostedNamespace()
		key := client.ObjectKeyFromObject(secret)
		if err := r.own(hcp, secret); err != nil {
			return fmt.Errorf("write Secret %s: %w", key, err)
		}
		err := r.client.Create(ctx, secret)
		if apierrors.IsAlreadyExists(err) {
			err = r.same(ctx, &r.secrets[i], key)
		}
		if err != nil {
			return fmt.Errorf("write Secret %s: %w", key, err)
		}
	}
	r.report.Printf("%d Secrets with keys are in namespace %s", len(r.secrets), r.hostedNamespace())
	return nil
}

// own makes the control plane the owner of a signer, as the control-plane-operator does. The service account keys have
// no owner.
func (r *restoring) own(hcp *hyperv1.HostedControlPlane, secret *corev1.Secret) error {
	if secret.Name == hosted.ServiceAccountKey {
		return nil
	}
	return controllerutil.SetControllerReference(hcp, secret, r.client.Scheme())
}

func (r *restoring) same(ctx context.Context, wanted *corev1.Secret, key client.ObjectKey) error {
	live := &corev1.Secret{}
	if err := r.client.Get(ctx, key, live); err != nil {
		return err
	}
	if !maps.EqualFunc(wanted.Data, live.Data, slices.Equal[[]byte]) {
		return fmt.Errorf("there is one with other content, which a restore would destroy; delete it if nothing needs it, and restore again")
	}
	return nil
}

// knowsEncryptionKey rejects a HostedCluster without the key that encrypts Secrets in the backup: its API server could
// not read them.
func (r *restoring) knowsEncryptionKey(ctx context.Context) error {
	names := r.contents.EncryptionKeys()
	if len(names) == 0 {
		return nil
	}
	used := r.contents.Secret(names[0])
	if used == nil || len(used.Data[hyperv1.AESCBCKeySecretKey]) == 0 {
		return fmt.Errorf("--from %s: the backup lacks Secret %s, the key of its encrypted Secrets; take another backup",
			r.from, names[0])
	}
	encryption := r.cluster.Spec.SecretEncryption
	if encryption == nil || encryption.AESCBC == nil {
		return r.errEncryptionKey(errors.New("it has no spec.secretEncryption.aescbc"))
	}
	for _, name := range []string{encryption.AESCBC.ActiveKey.Name, reference.Name(encryption.AESCBC.BackupKey)} {
		if name == "" {
			continue
		}
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: r.cluster.Namespace, Name: name}
		if err := r.client.Get(ctx, key, secret); err != nil {
			return r.errEncryptionKey(fmt.Errorf("read Secret %s: %w", key, err))
		}
		if bytes.Equal(secret.Data[hyperv1.AESCBCKeySecretKey], used.Data[hyperv1.AESCBCKeySecretKey]) {
			return nil
		}
	}
	return r.errEncryptionKey(errors.New("no Secret that spec.secretEncryption.aescbc names has it"))
}

func (r *restoring) errEncryptionKey(cause error) error {
	return fmt.Errorf("HostedCluster %s does not name the key that encrypts Secrets in the backup: %w; "+
		"create the Secret again and name it as activeKey or backupKey", client.ObjectKeyFromObject(r.cluster), cause)
}
