// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AzureKeyVaultAccessType says how a key vault is reached.
//
// +kubebuilder:validation:Enum=Public;Private;""
type AzureKeyVaultAccessType string

const (
	// AzureKeyVaultPublic reaches the vault over the internet.
	AzureKeyVaultPublic AzureKeyVaultAccessType = "Public"
	// AzureKeyVaultPrivate reaches the vault by a private endpoint.
	AzureKeyVaultPrivate AzureKeyVaultAccessType = "Private"
)

// AzureKeyVaultType is a kind of key vault.
//
// +kubebuilder:validation:Enum=KeyVault;ManagedHSM
type AzureKeyVaultType string

const (
	// AzureKeyVaultTypeKeyVault is an ordinary vault.
	AzureKeyVaultTypeKeyVault AzureKeyVaultType = "KeyVault"
	// AzureKeyVaultTypeManagedHSM is a hardware security module.
	AzureKeyVaultTypeManagedHSM AzureKeyVaultType = "ManagedHSM"
)

// AzureKMSSpec is keys of the Azure key vault.
type AzureKMSSpec struct {
	// activeKey encrypts what is written.
	// +required
	ActiveKey AzureKMSKey `json:"activeKey"`

	// backupKey decrypts what an earlier active key encrypted.
	// +optional
	BackupKey *AzureKMSKey `json:"backupKey,omitempty"`

	// kms is the managed identity that uses the keys.
	// +optional
	KMS *ManagedIdentity `json:"kms,omitempty"`

	// workloadIdentity is the workload identity that uses the keys.
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`

	// keyVaultAccess says how the vault is reached. Empty means Public.
	// +optional
	KeyVaultAccess AzureKeyVaultAccessType `json:"keyVaultAccess,omitempty"`

	// keyVaultType is the kind of vault. Empty means KeyVault.
	// +optional
	KeyVaultType AzureKeyVaultType `json:"keyVaultType,omitempty"`
}

// AzureKMSKey is one key of an Azure key vault.
type AzureKMSKey struct {
	// keyVaultName is the name of the vault.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	KeyVaultName string `json:"keyVaultName"`

	// keyName is the name of the key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	KeyName string `json:"keyName"`

	// keyVersion is the version of the key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	KeyVersion string `json:"keyVersion"`
}

// AzureClientID is the client ID (a UUID) of an Azure identity.
//
// +kubebuilder:validation:MinLength=36
// +kubebuilder:validation:MaxLength=36
// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`
type AzureClientID string

// ObjectEncodingFormat is the encoding of a certificate in a key vault.
//
// +kubebuilder:validation:Enum=utf-8;hex;base64
type ObjectEncodingFormat string

// ManagedIdentity is an Azure managed identity.
type ManagedIdentity struct {
	// clientID is the client ID of the identity.
	// +optional
	ClientID AzureClientID `json:"clientID,omitempty"`

	// objectEncoding is the encoding of the certificate.
	// +required
	ObjectEncoding ObjectEncodingFormat `json:"objectEncoding"`

	// credentialsSecretName is the name of the vault's secret that holds the credentials.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9-]+$`
	// +required
	CredentialsSecretName string `json:"credentialsSecretName"`
}

// WorkloadIdentity is an Azure workload identity.
type WorkloadIdentity struct {
	// clientID is the client ID of the identity.
	// +required
	ClientID AzureClientID `json:"clientID"`
}
