// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SecretEncryptionProvider is where a key of a cluster comes from, as status tells it.
//
// +kubebuilder:validation:Enum=Azure;AWS;IBMCloud;AESCBC;Plugin
type SecretEncryptionProvider string

// Where a key comes from.
const (
	SecretEncryptionProviderAzure    SecretEncryptionProvider = "Azure"
	SecretEncryptionProviderAWS      SecretEncryptionProvider = "AWS"
	SecretEncryptionProviderIBMCloud SecretEncryptionProvider = "IBMCloud"
	SecretEncryptionProviderAESCBC   SecretEncryptionProvider = "AESCBC"
	SecretEncryptionProviderPlugin   SecretEncryptionProvider = "Plugin"
)

// SecretEncryptionStatus tells which key encrypts, and which one is being moved to.
//
// +kubebuilder:validation:MinProperties=1
type SecretEncryptionStatus struct {
	// activeKey is the key that all data is encrypted with.
	// +optional
	ActiveKey SecretEncryptionKeyStatus `json:"activeKey,omitzero"`

	// targetKey is the key that data is being re-encrypted with. Unset when nothing moves.
	// +optional
	TargetKey SecretEncryptionKeyStatus `json:"targetKey,omitzero"`

	// history is the last moves from one key to another, newest first.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	History []EncryptionMigrationHistory `json:"history,omitempty"`
}

// SecretEncryptionKeyStatus is one key: the provider, and the block that belongs to it.
//
// +kubebuilder:validation:XValidation:rule=`(self.provider == 'AWS') == has(self.aws)`,message=`aws is required when provider is AWS, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.provider == 'Azure') == has(self.azure)`,message=`azure is required when provider is Azure, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.provider == 'IBMCloud') == has(self.ibmCloud)`,message=`ibmCloud is required when provider is IBMCloud, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.provider == 'AESCBC') == has(self.aescbc)`,message=`aescbc is required when provider is AESCBC, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.provider == 'Plugin') == has(self.plugin)`,message=`plugin is required when provider is Plugin, and forbidden otherwise`
type SecretEncryptionKeyStatus struct {
	// provider is where the key comes from. AESCBC is a key in a Secret, named by the type in the spec; the control planes
	// of Kubernetes releases encrypt with it by secretbox.
	// +unionDiscriminator
	// +required
	Provider SecretEncryptionProvider `json:"provider"`

	// azure goes with provider Azure.
	// +optional
	Azure AzureKMSKey `json:"azure,omitzero"`

	// aws goes with provider AWS.
	// +optional
	AWS AWSKMSKeyEntry `json:"aws,omitzero"`

	// ibmCloud goes with provider IBMCloud.
	// +optional
	IBMCloud IBMCloudKMSKeyEntry `json:"ibmCloud,omitzero"`

	// aescbc goes with provider AESCBC.
	// +optional
	AESCBC AESCBCKeyStatus `json:"aescbc,omitzero"`

	// plugin goes with provider Plugin.
	// +optional
	Plugin KMSPluginKeyStatus `json:"plugin,omitzero"`
}

// KMSPluginKeyStatus is the key of a plugin, which only the plugin knows.
type KMSPluginKeyStatus struct {
	// name is the plugin's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	Name string `json:"name"`
}

// AESCBCKeyStatus is a key that a Secret holds.
type AESCBCKeyStatus struct {
	// secret is the Secret.
	// +required
	Secret AESCBCKeySecretReference `json:"secret"`

	// dataHash is the SHA-256 of the key, in hex.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	DataHash string `json:"dataHash"`
}

// AESCBCKeySecretReference names the Secret of a key.
type AESCBCKeySecretReference struct {
	// name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// EncryptionMigrationState is how far a move to another key has come.
//
// +kubebuilder:validation:Enum=ReadOnlyDeploy;WritePromote;Migrating;Completed;Interrupted
type EncryptionMigrationState string

const (
	// EncryptionMigrationReadOnlyDeploy makes every API server able to read with the new key.
	EncryptionMigrationReadOnlyDeploy EncryptionMigrationState = "ReadOnlyDeploy"
	// EncryptionMigrationWritePromote makes every API server write with the new key.
	EncryptionMigrationWritePromote EncryptionMigrationState = "WritePromote"
	// EncryptionMigrationMigrating rewrites what is stored.
	EncryptionMigrationMigrating EncryptionMigrationState = "Migrating"
	// EncryptionMigrationCompleted is the end.
	EncryptionMigrationCompleted EncryptionMigrationState = "Completed"
	// EncryptionMigrationInterrupted is a move that another one took the place of.
	EncryptionMigrationInterrupted EncryptionMigrationState = "Interrupted"
)

// EncryptionMigrationHistory is one move from one key to another.
type EncryptionMigrationHistory struct {
	// state is how far the move has come.
	// +required
	State EncryptionMigrationState `json:"state"`

	// from is the key before.
	// +required
	From EncryptionKeyReference `json:"from"`

	// to is the key after.
	// +required
	To EncryptionKeyReference `json:"to"`

	// startedTime is when the move began.
	// +required
	StartedTime metav1.Time `json:"startedTime"`

	// completionTime is when the move ended. Unset while it goes on.
	// +optional
	CompletionTime metav1.Time `json:"completionTime,omitzero"`
}

// EncryptionKeyReference tells keys apart without naming them.
type EncryptionKeyReference struct {
	// provider is where the key comes from. AESCBC is a key in a Secret, named by the type in the spec; the control planes
	// of Kubernetes releases encrypt with it by secretbox.
	// +required
	Provider SecretEncryptionProvider `json:"provider"`

	// fingerprint is the SHA-256 of what identifies the key, in hex.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Fingerprint string `json:"fingerprint"`
}
