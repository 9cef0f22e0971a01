// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/reference"
)

const (
	// EncryptionSecret holds the encryption configuration of the API servers, and the progress of a migration to a new
	// key.
	EncryptionSecret = hosted.EncryptionConfig

	encryptionVolume = "secret-encryption"

	encryptionKey = "config.yaml"
	keyLength     = 32
)

func encrypts(scope *component.Scope) bool { return scope.HCP.Spec.SecretEncryption != nil }

// ValidateEncryption returns the requested encryption settings that are not supported; nil if all are.
func ValidateEncryption(hcp *hyperv1.HostedControlPlane) error {
	encryption := hcp.Spec.SecretEncryption
	if encryption == nil {
		return nil
	}
	if encryption.Type == hyperv1.AESCBC && encryption.AESCBC != nil || wantedPlugin(hcp) != nil {
		return nil
	}
	return fmt.Errorf("secretEncryption of type %q needs a key service that this control plane does not run; use type %s, or %s with provider %s",
		encryption.Type, hyperv1.AESCBC, hyperv1.KMS, hyperv1.KMSPlugin)
}

// adaptEncryption takes the next step towards the desired key, once all API servers have the result of the previous
// step. All state that a step needs is in the previous version of the Secret. The user may therefore delete an old key
// at any time, and this operator may restart.
func adaptEncryption(ctx context.Context, scope *component.Scope, secret *corev1.Secret) error {
	if err := ValidateEncryption(scope.HCP); err != nil {
		return err
	}
	wanted, spare, err := wantedKeys(ctx, scope)
	if err != nil {
		return err
	}
	live := &corev1.Secret{}
	err = hosted.ReadTrusted(ctx, scope.Client, client.ObjectKey{Namespace: scope.HCP.Namespace, Name: EncryptionSecret},
		live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", EncryptionSecret, err)
	}
	fleet, err := observeFleet(ctx, scope)
	if err != nil {
		return err
	}
	move, err := currentMove(live, wanted, fleet)
	if err != nil {
		return err
	}
	move = move.advance(wanted, fleet.runs(live), migrated(live))
	known, err := pluginsOf(live)
	if err != nil {
		return err
	}
	needed, err := known.needed(move.providers, wantedPlugin(scope.HCP))
	if err != nil {
		return err
	}
	if err := move.write(secret, spare); err != nil {
		return err
	}
	return needed.write(secret)
}

// wantedKeys returns the key that should encrypt, and the additional keys for reading.
//
// With the type aescbc, a Secret holds the key. The API server uses it with secretbox, which also detects modified
// data. AES-CBC does not, and is only used for reading.
func wantedKeys(ctx context.Context, scope *component.Scope) (wanted provider, spare []provider, err error) {
	if plugin := wantedPlugin(scope.HCP); plugin != nil {
		return provider{Kind: kms, Name: plugin.Name}, nil, nil
	}
	spec := scope.HCP.Spec.SecretEncryption.AESCBC
	active, err := readKey(ctx, scope.Client, scope.HCP.Namespace, spec.ActiveKey.Name)
	if err != nil {
		return provider{}, nil, err
	}
	wanted = provider{Kind: secretbox, Name: active.Name, Secret: active.Secret}
	spareName := reference.Name(spec.BackupKey)
	if spareName == "" || spareName == spec.ActiveKey.Name {
		return wanted, nil, nil
	}
	backup, err := readKey(ctx, scope.Client, scope.HCP.Namespace, spareName)
	if err != nil {
		return provider{}, nil, err
	}
	return wanted, bothKinds(backup), nil
}

// bothKinds returns providers that read data encrypted with a key by either algorithm. A plugin has only one.
func bothKinds(key provider) []provider {
	if key.Kind == kms {
		return []provider{key}
	}
	box, cbc := key, key
	box.Kind, cbc.Kind = secretbox, aescbc
	return []provider{box, cbc}
}

func readKey(ctx context.Context, c client.Reader, namespace, name string) (provider, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return provider{}, fmt.Errorf("reading encryption key Secret %s: %w", name, err)
	}
	key := secret.Data[hyperv1.AESCBCKeySecretKey]
	if len(key) != keyLength {
		return provider{}, fmt.Errorf("encryption key Secret %s: key %q must hold %d bytes, it holds %d", name, hyperv1.AESCBCKeySecretKey, keyLength, len(key))
	}
	hash := fnv.New32()
	hash.Write(key)
	return provider{Name: fmt.Sprintf("key-%d", hash.Sum32()), Secret: base64.StdEncoding.EncodeToString(key)}, nil
}
