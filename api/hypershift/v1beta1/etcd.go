// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// EtcdManagementType specifies whether the operator or the user runs etcd.
//
// +kubebuilder:validation:Enum=Managed;Unmanaged
type EtcdManagementType string

const (
	// Managed runs etcd in the control plane.
	Managed EtcdManagementType = "Managed"
	// Unmanaged uses an etcd that the user runs.
	Unmanaged EtcdManagementType = "Unmanaged"
)

// EtcdSpec is where a cluster keeps its state: the type, and the block that belongs to it.
//
// +kubebuilder:validation:XValidation:rule=`(self.managementType == 'Managed') == has(self.managed)`,message=`etcd.managed is required when etcd.managementType is Managed, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.managementType == 'Unmanaged') == has(self.unmanaged)`,message=`etcd.unmanaged is required when etcd.managementType is Unmanaged, and forbidden otherwise`
type EtcdSpec struct {
	// managementType specifies whether the operator or the user runs etcd. It cannot be changed.
	// +unionDiscriminator
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`etcd.managementType is immutable: create a new HostedCluster to change it`
	ManagementType EtcdManagementType `json:"managementType"`

	// managed goes with type Managed.
	// +optional
	Managed *ManagedEtcdSpec `json:"managed,omitempty"`

	// unmanaged goes with type Unmanaged.
	// +optional
	Unmanaged *UnmanagedEtcdSpec `json:"unmanaged,omitempty"`
}

// ManagedEtcdSpec is an etcd that runs in the control plane.
type ManagedEtcdSpec struct {
	// storage is where it keeps its data.
	// +required
	Storage ManagedEtcdStorageSpec `json:"storage"`

	// automatedBackup has backups made from time to time. Without it there are those that HCPEtcdBackups ask for.
	// +optional
	AutomatedBackup *AutomatedEtcdBackupConfig `json:"automatedBackup,omitempty"`
}

// AutomatedEtcdBackupConfig says when backups of etcd are made, where they go and how long they stay.
type AutomatedEtcdBackupConfig struct {
	// schedule is when backups are made, as five fields of cron in UTC. Empty means every hour.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(\S+\s+){4}\S+$')`,message=`etcd.managed.automatedBackup.schedule must have the five fields of cron, such as "0 */6 * * *"`
	Schedule string `json:"schedule,omitempty"`

	// retention is how many good backups stay; the oldest goes first, with what is stored of it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=24
	// +optional
	Retention int32 `json:"retention,omitempty"`

	// storage is where backups go. Its Secrets are beside the HostedCluster.
	// +required
	Storage AutomatedEtcdBackupStorage `json:"storage"`

	// encryptionKey names a Secret beside the HostedCluster with the key "recipients": public keys of age, one a line.
	// +required
	EncryptionKey SecretReference `json:"encryptionKey"`
}

// AutomatedEtcdBackupStorageType is a kind of storage for backups.
//
// +kubebuilder:validation:Enum=S3;PVC
type AutomatedEtcdBackupStorageType string

// AutomatedEtcdBackupStorage is where backups go.
//
// +kubebuilder:validation:XValidation:rule=`(self.type == 'S3') == has(self.s3)`,message=`automatedBackup.storage.s3 is required when storage.type is S3, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`(self.type == 'PVC') == has(self.pvc)`,message=`automatedBackup.storage.pvc is required when storage.type is PVC, and forbidden otherwise`
type AutomatedEtcdBackupStorage struct {
	// type is the kind of storage.
	// +unionDiscriminator
	// +required
	Type AutomatedEtcdBackupStorageType `json:"type"`

	// s3 goes with type S3.
	// +optional
	S3 *HCPEtcdBackupS3 `json:"s3,omitempty"`

	// pvc goes with type PVC.
	// +optional
	PVC *HCPEtcdBackupPVC `json:"pvc,omitempty"`
}

// ManagedEtcdStorageType is a kind of storage of etcd.
//
// +kubebuilder:validation:Enum=PersistentVolume
type ManagedEtcdStorageType string

const (
	// PersistentVolumeEtcdStorage keeps the data in PersistentVolumes.
	PersistentVolumeEtcdStorage ManagedEtcdStorageType = "PersistentVolume"
)

// ManagedEtcdStorageSpec is where a managed etcd keeps its data.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.restoreSnapshotURL) ? size(self.restoreSnapshotURL) : 0) == (has(oldSelf.restoreSnapshotURL) ? size(oldSelf.restoreSnapshotURL) : 0)`,message=`etcd.managed.storage.restoreSnapshotURL can neither be added nor removed later: only the first start restores a snapshot`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.persistentVolume) || has(self.persistentVolume)`,message=`etcd.managed.storage.persistentVolume cannot be removed: its size can only be raised`
type ManagedEtcdStorageSpec struct {
	// type is the kind of storage.
	// +unionDiscriminator
	// +required
	Type ManagedEtcdStorageType `json:"type"`

	// persistentVolume goes with type PersistentVolume.
	// +optional
	PersistentVolume *PersistentVolumeEtcdStorageSpec `json:"persistentVolume,omitempty"`

	// restoreSnapshotURL is the URL (https or s3, at most one) of a snapshot that the first start restores. It cannot
	// be changed.
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=set
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`etcd.managed.storage.restoreSnapshotURL is immutable: create a new HostedCluster to change it`
	// +kubebuilder:validation:XValidation:rule=`self.all(u, u.matches(r'^(https|s3)://.+'))`,message=`etcd.managed.storage.restoreSnapshotURL must be a URL with scheme https or s3`
	RestoreSnapshotURL []string `json:"restoreSnapshotURL,omitempty"`
}

// DefaultPersistentVolumeEtcdStorageSize is the size of etcd's volumes when none is given.
var DefaultPersistentVolumeEtcdStorageSize = resource.MustParse("8Gi")

// PersistentVolumeEtcdStorageSpec is the volumes of a managed etcd.
//
// +kubebuilder:validation:XValidation:rule=`has(self.storageClassName) == has(oldSelf.storageClassName)`,message=`etcd.managed.storage.persistentVolume.storageClassName is immutable: create a new HostedCluster to change it`
type PersistentVolumeEtcdStorageSpec struct {
	// storageClassName is the StorageClass of the volumes. Unset means the management cluster's default.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`etcd.managed.storage.persistentVolume.storageClassName is immutable: create a new HostedCluster to change it`
	StorageClassName *string `json:"storageClassName,omitempty"`

	// size is the size of each volume, e.g. "8Gi". With a Kubernetes payload it can be raised later, where the StorageClass allows volumes to grow.
	// +kubebuilder:default="8Gi"
	// +optional
	// +kubebuilder:validation:XValidation:rule=`[string(self), string(oldSelf)].exists(s, !s.matches(r'^[0-9]+(\.[0-9]*)?([KMGTPE]i|[mkMGTPE]|[eE][0-9]{1,3})?$')) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0`,message=`etcd.managed.storage.persistentVolume.size can only be raised: volumes do not shrink`
	// +kubebuilder:validation:XValidation:rule=`string(self).matches(r'^[0-9]+(\.[0-9]*)?([KMGTPE]i|[mkMGTPE]|[eE][0-9]{1,3})?$') && quantity(string(self)).isGreaterThan(quantity('0'))`,message=`etcd.managed.storage.persistentVolume.size must be a quantity greater than 0, such as 8Gi`
	Size *resource.Quantity `json:"size,omitempty"`
}

// UnmanagedEtcdSpec is an etcd that the user runs.
type UnmanagedEtcdSpec struct {
	// endpoint is the URL of its client port, e.g. "https://etcd-client:2379". A Kubernetes payload takes the URLs of several members, with commas and no spaces between them.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^https://`
	// +required
	Endpoint string `json:"endpoint"`

	// tls is what its clients authenticate with.
	// +required
	TLS EtcdTLSConfig `json:"tls"`
}

// EtcdTLSConfig is what clients of etcd authenticate with.
type EtcdTLSConfig struct {
	// clientSecret names a Secret with the keys "etcd-client.crt", "etcd-client.key" and "etcd-client-ca.crt".
	// +required
	ClientSecret corev1.LocalObjectReference `json:"clientSecret"`
}
