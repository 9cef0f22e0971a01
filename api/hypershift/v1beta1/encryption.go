// SPDX-License-Identifier: Apache-2.0

package v1beta1

import corev1 "k8s.io/api/core/v1"

// SecretEncryptionType is a way to encrypt Secrets in etcd.
//
// +kubebuilder:validation:Enum=kms;aescbc
type SecretEncryptionType string

const (
	// KMS encrypts with a key that a key service keeps: a cloud's with an OpenShift payload, that of a plugin with a Kubernetes payload.
	KMS SecretEncryptionType = "kms"
	// AESCBC encrypts with a key that a Secret holds: by AES-CBC with an OpenShift payload, by secretbox with a Kubernetes payload.
	AESCBC SecretEncryptionType = "aescbc"
)

// SecretEncryptionSpec is how Secrets are encrypted in etcd: the type, and the block that belongs to it.
//
// +kubebuilder:validation:XValidation:rule=`(self.type == 'kms') == has(self.kms)`,message=`secretEncryption.kms is required when secretEncryption.type is kms, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.type == 'aescbc') == has(self.aescbc)`,message=`secretEncryption.aescbc is required when secretEncryption.type is aescbc, and forbidden otherwise`
type SecretEncryptionSpec struct {
	// type is the way of encryption.
	// +unionDiscriminator
	// +required
	Type SecretEncryptionType `json:"type"`

	// kms goes with type kms.
	// +optional
	KMS *KMSSpec `json:"kms,omitempty"`

	// aescbc goes with type aescbc. With a Kubernetes payload its key of 32 bytes is used with secretbox, which also notices when
	// stored data was changed.
	// +optional
	AESCBC *AESCBCSpec `json:"aescbc,omitempty"`
}

// AESCBCSpec names the keys that Secrets hold, of AES-CBC encryption, or of secretbox with a Kubernetes payload.
type AESCBCSpec struct {
	// activeKey names a Secret with the key "key" (32 bytes): what is written is encrypted with it.
	// +required
	ActiveKey corev1.LocalObjectReference `json:"activeKey"`

	// backupKey names a Secret with the key "key": what was encrypted with it can still be read, which a change of
	// activeKey needs.
	// +optional
	BackupKey *corev1.LocalObjectReference `json:"backupKey,omitempty"`
}

// KMSProvider is a cloud's key service, or a plugin that stands for any.
//
// +kubebuilder:validation:Enum=IBMCloud;AWS;Azure;Plugin
type KMSProvider string

// The key services.
const (
	IBMCloud KMSProvider = "IBMCloud"
	AWS      KMSProvider = "AWS"
	AZURE    KMSProvider = "Azure"
	// KMSPlugin is a plugin of the KMS v2 protocol that the user names. Kubernetes payloads have it, and no other provider.
	KMSPlugin KMSProvider = "Plugin"
)

// KMSSpec is a key of a key service: the provider, and the block that belongs to it.
//
// +kubebuilder:validation:XValidation:rule=`(self.provider == 'AWS') == has(self.aws)`,message=`secretEncryption.kms.aws is required when secretEncryption.kms.provider is AWS, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.provider == 'Azure') == has(self.azure)`,message=`secretEncryption.kms.azure is required when secretEncryption.kms.provider is Azure, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.provider == 'IBMCloud') == has(self.ibmcloud)`,message=`secretEncryption.kms.ibmcloud is required when secretEncryption.kms.provider is IBMCloud, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.provider == 'Plugin') == has(self.plugin)`,message=`secretEncryption.kms.plugin is required when secretEncryption.kms.provider is Plugin, and forbidden otherwise`
type KMSSpec struct {
	// provider is the key service.
	// +unionDiscriminator
	// +required
	Provider KMSProvider `json:"provider"`

	// ibmcloud goes with provider IBMCloud.
	// +optional
	IBMCloud *IBMCloudKMSSpec `json:"ibmcloud,omitempty"`

	// aws goes with provider AWS.
	// +optional
	AWS *AWSKMSSpec `json:"aws,omitempty"`

	// azure goes with provider Azure.
	// +optional
	Azure *AzureKMSSpec `json:"azure,omitempty"`

	// plugin goes with provider Plugin.
	// +optional
	Plugin *KMSPluginSpec `json:"plugin,omitempty"`
}
