// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HCPEtcdBackupCompleted is the condition that reports whether the snapshot of an HCPEtcdBackup was taken.
const HCPEtcdBackupCompleted = "BackupCompleted"

// Reasons of HCPEtcdBackupCompleted. With BackupSucceeded and BackupFailed an HCPEtcdBackup is over; the others go by.
const (
	BackupSucceededReason         = "BackupSucceeded"
	BackupFailedReason            = "BackupFailed"
	BackupAlreadyInProgressReason = "BackupAlreadyInProgress"
	// BackupInProgressReason goes with Unknown.
	BackupInProgressReason = "BackupInProgress"
	EtcdUnhealthyReason    = "EtcdUnhealthy"
	// BackupPausedReason is of a control plane that is paused.
	BackupPausedReason = "Paused"
	// BackupEncryptionMovingReason is of a control plane whose Secrets are being encrypted with another key.
	BackupEncryptionMovingReason = "EncryptionMoving"
	// BackupNotSupportedReason is of storage, or a release, with which no backup is made.
	BackupNotSupportedReason = "NotSupported"
)

// HCPEtcdBackup asks for one snapshot of a hosted cluster's etcd. It lives in the namespace of the
// HostedControlPlane; its spec cannot be changed.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hcpetcdbackups,shortName=hcpetcdbk,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Completed",type="string",JSONPath=".status.conditions[?(@.type==\"BackupCompleted\")].status",description="Whether the snapshot was taken"
// +kubebuilder:printcolumn:name="Progress",type="string",JSONPath=".status.progress",description="How far it is"
// +kubebuilder:printcolumn:name="Size",type="integer",JSONPath=".status.size",description="Bytes that are stored"
// +kubebuilder:printcolumn:name="URL",type="string",JSONPath=".status.snapshotURL",description="Where the snapshot is"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type HCPEtcdBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where the snapshot goes.
	// +required
	Spec HCPEtcdBackupSpec `json:"spec"`
	// status tells how the snapshot went.
	// +optional
	Status HCPEtcdBackupStatus `json:"status,omitzero"`
}

// HCPEtcdBackupSpec says where a snapshot goes.
//
// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`spec is immutable: create another HCPEtcdBackup`
type HCPEtcdBackupSpec struct {
	// storage is where the snapshot goes.
	// +required
	Storage HCPEtcdBackupStorage `json:"storage"`

	// encryptionKey names a Secret of the same namespace with the key that the backup is encrypted with. "recipients" has public keys
	// of age, one a line, or "identity" has the private one. A backup has all keys of the cluster in it and is never stored in clear: it
	// is required with the releases of Kubernetes.
	// +optional
	EncryptionKey SecretReference `json:"encryptionKey,omitzero"`

	// deletionPolicy says what becomes of what is stored when the HCPEtcdBackup is deleted: Retain leaves it, Delete removes it first.
	// With the cluster nothing is removed.
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy HCPEtcdBackupDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// HCPEtcdBackupDeletionPolicy says what becomes of what is stored.
//
// +kubebuilder:validation:Enum=Retain;Delete
type HCPEtcdBackupDeletionPolicy string

const (
	// RetainBackup leaves what is stored.
	RetainBackup HCPEtcdBackupDeletionPolicy = "Retain"
	// DeleteBackup removes what is stored with the HCPEtcdBackup.
	DeleteBackup HCPEtcdBackupDeletionPolicy = "Delete"
)

// HCPEtcdBackupStorageType is a kind of storage for snapshots.
//
// +kubebuilder:validation:Enum=S3;AzureBlob;PVC
type HCPEtcdBackupStorageType string

const (
	// S3BackupStorage is a bucket of S3 or of what speaks its protocol.
	S3BackupStorage HCPEtcdBackupStorageType = "S3"
	// AzureBlobBackupStorage is a container of Azure Blob Storage.
	AzureBlobBackupStorage HCPEtcdBackupStorageType = "AzureBlob"
	// PVCBackupStorage is the volume of a PersistentVolumeClaim.
	PVCBackupStorage HCPEtcdBackupStorageType = "PVC"
)

// HCPEtcdBackupStorage is where a snapshot goes: the type, and the block that belongs to it.
//
// +kubebuilder:validation:XValidation:rule=`(self.storageType == 'S3') == has(self.s3)`,message=`storage.s3 is required when storage.storageType is S3, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.storageType == 'AzureBlob') == has(self.azureBlob)`,message=`storage.azureBlob is required when storage.storageType is AzureBlob, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.storageType == 'PVC') == has(self.pvc)`,message=`storage.pvc is required when storage.storageType is PVC, and forbidden otherwise`
type HCPEtcdBackupStorage struct {
	// storageType is the kind of storage.
	// +unionDiscriminator
	// +required
	StorageType HCPEtcdBackupStorageType `json:"storageType"`

	// s3 goes with type S3.
	// +optional
	S3 HCPEtcdBackupS3 `json:"s3,omitzero"`

	// azureBlob goes with type AzureBlob.
	// +optional
	AzureBlob HCPEtcdBackupAzureBlob `json:"azureBlob,omitzero"`

	// pvc goes with type PVC.
	// +optional
	PVC HCPEtcdBackupPVC `json:"pvc,omitzero"`
}

// HCPEtcdBackupPVC is a volume.
type HCPEtcdBackupPVC struct {
	// claimName is the name of a PersistentVolumeClaim in the namespace of the HostedControlPlane.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ClaimName string `json:"claimName"`
}

// HCPEtcdBackupS3 is a place in a bucket.
type HCPEtcdBackupS3 struct {
	// bucket is the name of the bucket.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9][a-z0-9.-]*[a-z0-9]$')`,message=`storage.s3.bucket must consist of lower case letters, digits, '.' and '-'`
	Bucket string `json:"bucket"`

	// region is the region of the bucket.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Region string `json:"region"`

	// keyPrefix is the folder in the bucket.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	KeyPrefix string `json:"keyPrefix"`

	// endpoint is the URL of an object store that speaks the protocol of S3. Empty means AWS.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^https?://[^/@]+/?$')`,message=`storage.s3.endpoint must be a URL such as https://minio.example.com:9000, without a path`
	Endpoint string `json:"endpoint,omitempty"`

	// credentials names a Secret with the key "credentials", an AWS credentials file. CAs of the endpoint may be in "ca-bundle.crt".
	// +required
	Credentials SecretReference `json:"credentials"`

	// kmsKeyARN is the ARN of the key that encrypts the snapshot. Empty means the bucket's default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/.+$')`,message=`storage.s3.kmsKeyARN must be the ARN of a key, such as arn:aws:kms:eu-central-1:123456789012:key/my-key`
	KMSKeyARN string `json:"kmsKeyARN,omitempty"`
}

// HCPEtcdBackupAzureBlob is a place in a container of Azure Blob Storage.
type HCPEtcdBackupAzureBlob struct {
	// container is the name of the container.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')`,message=`storage.azureBlob.container must consist of lower case letters, digits and '-'`
	Container string `json:"container"`

	// storageAccount is the storage account of the container.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=24
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]+$')`,message=`storage.azureBlob.storageAccount must consist of lower case letters and digits`
	StorageAccount string `json:"storageAccount"`

	// keyPrefix is the folder in the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	KeyPrefix string `json:"keyPrefix"`

	// credentials names a Secret with the key "credentials".
	// +required
	Credentials SecretReference `json:"credentials"`

	// encryptionKeyURL is the URL of the key that encrypts the snapshot. Empty means the account's default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=210
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^https://.+/keys/.+$')`,message=`storage.azureBlob.encryptionKeyURL must be the URL of a key, such as https://my-vault.vault.azure.net/keys/my-key/1`
	EncryptionKeyURL string `json:"encryptionKeyURL,omitempty"`
}

// SecretReference names a Secret of the same namespace.
type SecretReference struct {
	// name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// HCPEtcdBackupStatus tells how a snapshot went.
//
// +kubebuilder:validation:MinProperties=1
type HCPEtcdBackupStatus struct {
	// conditions tell how the snapshot went; BackupCompleted is the one to wait for.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// snapshotURL is where the snapshot is.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	SnapshotURL string `json:"snapshotURL,omitempty"`

	// progress is how far the backup is; empty when it is over.
	// +optional
	Progress string `json:"progress,omitempty"`

	// startTime is when the backup began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the backup had been stored and read back.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// size is how many bytes are stored.
	// +optional
	Size int64 `json:"size,omitempty"`

	// sha256 is the hexadecimal checksum of what is stored.
	// +optional
	SHA256 string `json:"sha256,omitempty"`

	// etcdVersion is the version of the member that the snapshot was taken of.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// revision is the newest that the snapshot has.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// encryptionMetadata is the key that encrypted the snapshot.
	// +optional
	EncryptionMetadata HCPEtcdBackupEncryptionMetadata `json:"encryptionMetadata,omitzero"`
}

// HCPEtcdBackupEncryptionMetadata is the key that encrypted a snapshot.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type HCPEtcdBackupEncryptionMetadata struct {
	// aws is a key of the AWS key service.
	// +optional
	AWS HCPEtcdBackupAWSEncryption `json:"aws,omitzero"`

	// azure is a key of an Azure key vault.
	// +optional
	Azure HCPEtcdBackupAzureEncryption `json:"azure,omitzero"`
}

// HCPEtcdBackupAWSEncryption is a key of the AWS key service.
type HCPEtcdBackupAWSEncryption struct {
	// kmsKeyARN is the ARN of the key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	KMSKeyARN string `json:"kmsKeyARN"`
}

// HCPEtcdBackupAzureEncryption is a key of an Azure key vault.
type HCPEtcdBackupAzureEncryption struct {
	// encryptionKeyURL is the URL of the key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=210
	// +required
	EncryptionKeyURL string `json:"encryptionKeyURL"`
}

// HCPEtcdBackupList is a list of HCPEtcdBackups.
//
// +kubebuilder:object:root=true
type HCPEtcdBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HCPEtcdBackup `json:"items"`
}
