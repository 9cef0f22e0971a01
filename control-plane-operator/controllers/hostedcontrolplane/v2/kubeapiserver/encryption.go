package kubeapiserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

const (
	encryptionSecret = "kas-secret-encryption-config"
	encryptionKey    = "config.yaml"
	aesKeyLength     = 32
)

func encrypts(scope *component.Scope) bool { return scope.HCP.Spec.SecretEncryption != nil }

// ValidateEncryption says what of the encryption that a cluster asks for cannot be had; nil if all can.
func ValidateEncryption(hcp *hyperv1.HostedControlPlane) error {
	encryption := hcp.Spec.SecretEncryption
	if encryption == nil {
		return nil
	}
	if encryption.Type != hyperv1.AESCBC || encryption.AESCBC == nil {
		return fmt.Errorf("secretEncryption of type %q needs a key service that this control plane does not run; use type %s", encryption.Type, hyperv1.AESCBC)
	}
	return nil
}

func adaptEncryption(ctx context.Context, scope *component.Scope, secret *corev1.Secret) error {
	if err := ValidateEncryption(scope.HCP); err != nil {
		return err
	}
	spec := scope.HCP.Spec.SecretEncryption.AESCBC
	references := []corev1.LocalObjectReference{spec.ActiveKey}
	if spec.BackupKey != nil {
		references = append(references, *spec.BackupKey)
	}
	var keys []apiserverv1.Key
	for _, reference := range references {
		key, err := readKey(ctx, scope, reference.Name)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	raw, err := yaml.Marshal(encryptionConfig(keys))
	if err != nil {
		return fmt.Errorf("rendering the encryption configuration: %w", err)
	}
	secret.Data = map[string][]byte{encryptionKey: raw}
	return nil
}

// encryptionConfig writes with the first key and reads with all of them, and what was never encrypted.
func encryptionConfig(keys []apiserverv1.Key) apiserverv1.EncryptionConfiguration {
	return apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: []string{"secrets"},
			Providers: []apiserverv1.ProviderConfiguration{
				{AESCBC: &apiserverv1.AESConfiguration{Keys: keys}},
				{Identity: &apiserverv1.IdentityConfiguration{}},
			},
		}},
	}
}

func readKey(ctx context.Context, scope *component.Scope, name string) (apiserverv1.Key, error) {
	secret := &corev1.Secret{}
	if err := scope.Client.Get(ctx, client.ObjectKey{Namespace: scope.HCP.Namespace, Name: name}, secret); err != nil {
		return apiserverv1.Key{}, fmt.Errorf("reading encryption key Secret %s: %w", name, err)
	}
	key := secret.Data[hyperv1.AESCBCKeySecretKey]
	if len(key) != aesKeyLength {
		return apiserverv1.Key{}, fmt.Errorf("encryption key Secret %s: key %q must hold %d bytes, it holds %d", name, hyperv1.AESCBCKeySecretKey, aesKeyLength, len(key))
	}
	hash := fnv.New32()
	hash.Write(key)
	return apiserverv1.Key{Name: fmt.Sprintf("key-%d", hash.Sum32()), Secret: base64.StdEncoding.EncodeToString(key)}, nil
}
