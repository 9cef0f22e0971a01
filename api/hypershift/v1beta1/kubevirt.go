// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// KubevirtPlatformSpec says how a cluster uses virtual machines of KubeVirt.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.generateID) || has(self.generateID)",message="generateID is required once it was set"
type KubevirtPlatformSpec struct {
	// baseDomainPassthrough takes the base domain from the management cluster's ingress.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="baseDomainPassthrough is immutable: create a new HostedCluster to change it"
	// +optional
	BaseDomainPassthrough *bool `json:"baseDomainPassthrough,omitempty"`

	// generateID makes names unique where the base domain is passed through.
	//
	// +kubebuilder:validation:MaxLength=11
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="generateID is immutable: create a new HostedCluster to change it"
	// +optional
	GenerateID string `json:"generateID,omitempty"`

	// credentials of the cluster that runs the virtual machines, where that is not the management cluster.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="credentials are immutable: create a new HostedCluster to change them"
	// +optional
	Credentials *KubevirtPlatformCredentials `json:"credentials,omitempty"`

	// storageDriver says how volumes of the hosted cluster map to those of the cluster that runs the virtual machines.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storageDriver is immutable: create a new HostedCluster to change it"
	// +optional
	StorageDriver *KubevirtStorageDriverSpec `json:"storageDriver,omitempty"`
}

// KubevirtPlatformCredentials reach the cluster that runs the virtual machines.
type KubevirtPlatformCredentials struct {
	// infraKubeConfigSecret holds the kubeconfig.
	//
	// +optional
	InfraKubeConfigSecret *KubeconfigSecretRef `json:"infraKubeConfigSecret,omitempty"`

	// infraNamespace is the namespace of the virtual machines.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	InfraNamespace string `json:"infraNamespace"`
}

// KubevirtStorageDriverConfigType says how storage is mapped.
//
// +kubebuilder:validation:Enum=None;Default;Manual
type KubevirtStorageDriverConfigType string

// The ways to map storage.
const (
	NoneKubevirtStorageDriverConfigType    KubevirtStorageDriverConfigType = "None"
	DefaultKubevirtStorageDriverConfigType KubevirtStorageDriverConfigType = "Default"
	ManualKubevirtStorageDriverConfigType  KubevirtStorageDriverConfigType = "Manual"
)

// KubevirtStorageDriverSpec says how storage is mapped.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.manual) || self.type == 'Manual'`,message=`storageDriver.manual is forbidden when storageDriver.type is not Manual`
type KubevirtStorageDriverSpec struct {
	// type of the mapping.
	//
	// +kubebuilder:default=Default
	// +optional
	Type KubevirtStorageDriverConfigType `json:"type,omitempty"`

	// manual is the mapping of type Manual.
	//
	// +optional
	Manual *KubevirtManualStorageDriverConfig `json:"manual,omitempty"`
}

// KubevirtManualStorageDriverConfig maps storage classes one by one.
type KubevirtManualStorageDriverConfig struct {
	// storageClassMapping maps storage classes.
	//
	// +kubebuilder:validation:MaxItems=50
	// +optional
	StorageClassMapping []KubevirtStorageClassMapping `json:"storageClassMapping,omitempty"`

	// volumeSnapshotClassMapping maps snapshot classes.
	//
	// +kubebuilder:validation:MaxItems=50
	// +optional
	VolumeSnapshotClassMapping []KubevirtVolumeSnapshotClassMapping `json:"volumeSnapshotClassMapping,omitempty"`
}

// KubevirtStorageClassMapping maps one storage class.
type KubevirtStorageClassMapping struct {
	// group ties storage classes to the snapshot classes that serve them.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Group string `json:"group,omitempty"`

	// infraStorageClassName is the class outside.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	InfraStorageClassName string `json:"infraStorageClassName"`

	// guestStorageClassName is the class inside the hosted cluster.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	GuestStorageClassName string `json:"guestStorageClassName"`
}

// KubevirtVolumeSnapshotClassMapping maps one snapshot class.
type KubevirtVolumeSnapshotClassMapping struct {
	// group ties snapshot classes to the storage classes that they serve.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Group string `json:"group,omitempty"`

	// infraVolumeSnapshotClassName is the class outside.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	InfraVolumeSnapshotClassName string `json:"infraVolumeSnapshotClassName"`

	// guestVolumeSnapshotClassName is the class inside the hosted cluster.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	GuestVolumeSnapshotClassName string `json:"guestVolumeSnapshotClassName"`
}

// KubevirtNodePoolPlatform shapes the virtual machines of a pool. A change rolls the pool.
type KubevirtNodePoolPlatform struct {
	// rootVolume of the virtual machines.
	//
	// +kubebuilder:default={type: "Persistent", persistent: {size: "32Gi"}}
	// +required
	RootVolume *KubevirtRootVolume `json:"rootVolume"`

	// compute is what a virtual machine gets.
	//
	// +kubebuilder:default={memory: "8Gi", cores: 2}
	// +optional
	Compute *KubevirtCompute `json:"compute,omitempty"`

	// networkInterfaceMultiqueue gives each virtual CPU a queue of the network interface.
	//
	// +kubebuilder:validation:Enum=Enable;Disable
	// +kubebuilder:default=Enable
	// +optional
	NetworkInterfaceMultiQueue *MultiQueueSetting `json:"networkInterfaceMultiqueue,omitempty"`

	// additionalNetworks of the virtual machines.
	//
	// +kubebuilder:validation:MaxItems=20
	// +optional
	AdditionalNetworks []KubevirtNetwork `json:"additionalNetworks,omitempty"`

	// attachDefaultNetwork connects the pod network too.
	//
	// +kubebuilder:default=true
	// +optional
	AttachDefaultNetwork *bool `json:"attachDefaultNetwork,omitempty"`

	// nodeSelector of the virtual machines' pods.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// hostDevices that are passed through.
	//
	// +kubebuilder:validation:MaxItems=10
	// +optional
	KubevirtHostDevices []KubevirtHostDevice `json:"hostDevices,omitempty"`
}

// MultiQueueSetting switches the queues of a network interface.
type MultiQueueSetting string

// The settings of the queues.
const (
	MultiQueueEnable  MultiQueueSetting = "Enable"
	MultiQueueDisable MultiQueueSetting = "Disable"
)

// KubevirtRootVolume is the root volume of a virtual machine.
type KubevirtRootVolume struct {
	// diskImage is the image that the volume is filled from. Absent means the one of the release payload.
	//
	// +optional
	Image *KubevirtDiskImage `json:"diskImage,omitempty"`

	// cacheStrategy specifies whether the image is kept in the cluster.
	//
	// +optional
	CacheStrategy *KubevirtCachingStrategy `json:"cacheStrategy,omitempty"`

	KubevirtVolume `json:",inline"`
}

// KubevirtDiskImage is a disk image.
type KubevirtDiskImage struct {
	// containerDiskImage is a container image that holds the disk.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	ContainerDiskImage *string `json:"containerDiskImage,omitempty"`
}

// KubevirtCachingStrategyType says where a disk image is kept.
//
// +kubebuilder:validation:Enum=None;PVC
type KubevirtCachingStrategyType string

// The places to keep a disk image.
const (
	KubevirtCachingStrategyNone KubevirtCachingStrategyType = "None"
	KubevirtCachingStrategyPVC  KubevirtCachingStrategyType = "PVC"
)

// KubevirtCachingStrategy specifies whether a disk image is kept in the cluster.
type KubevirtCachingStrategy struct {
	// type of the cache.
	//
	// +kubebuilder:default=None
	// +required
	Type KubevirtCachingStrategyType `json:"type"`
}

// KubevirtVolume is a volume of a virtual machine.
type KubevirtVolume struct {
	// type of the volume.
	//
	// +kubebuilder:validation:Enum=Persistent
	// +kubebuilder:default=Persistent
	// +optional
	Type KubevirtVolumeType `json:"type,omitempty"`

	// persistent shapes a volume of type Persistent.
	//
	// +optional
	Persistent *KubevirtPersistentVolume `json:"persistent,omitempty"`
}

// KubevirtVolumeType is a type of volume.
type KubevirtVolumeType string

// KubevirtVolumeTypePersistent is a volume that outlives its virtual machine's restarts.
const KubevirtVolumeTypePersistent KubevirtVolumeType = "Persistent"

// PersistentVolumeAccessMode is an access mode of a volume.
//
// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteMany;ReadOnly;ReadWriteOncePod
type PersistentVolumeAccessMode string

// KubevirtPersistentVolume is a persistent volume.
type KubevirtPersistentVolume struct {
	// size of the volume.
	//
	// +kubebuilder:default="32Gi"
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// storageClass of the volume.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	StorageClass *string `json:"storageClass,omitempty"`

	// accessModes of the volume.
	//
	// +kubebuilder:validation:MaxItems=10
	// +optional
	AccessModes []PersistentVolumeAccessMode `json:"accessModes,omitempty"`

	// volumeMode of the volume.
	//
	// +kubebuilder:validation:Enum=Filesystem;Block
	// +optional
	VolumeMode *string `json:"volumeMode,omitempty"`
}

// QoSClass is a quality of service of pods.
//
// +kubebuilder:validation:Enum=Burstable;Guaranteed
type QoSClass string

// The qualities of service.
const (
	QoSClassBurstable  QoSClass = "Burstable"
	QoSClassGuaranteed QoSClass = "Guaranteed"
)

// KubevirtCompute is what a virtual machine gets.
type KubevirtCompute struct {
	// memory of the virtual machine.
	//
	// +kubebuilder:default="8Gi"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// cores of the virtual machine.
	//
	// +kubebuilder:validation:Minimum=1
	// +optional
	Cores *uint32 `json:"cores,omitempty"`

	// qosClass of the virtual machine's pod.
	//
	// +kubebuilder:default=Burstable
	// +optional
	QosClass *QoSClass `json:"qosClass,omitempty"`
}

// KubevirtNetwork is a network of a virtual machine.
type KubevirtNetwork struct {
	// name is <namespace>/<name> of a NetworkAttachmentDefinition.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	Name string `json:"name"`
}

// KubevirtHostDevice is a device of the host that is passed through.
type KubevirtHostDevice struct {
	// deviceName as the host advertises it.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	DeviceName string `json:"deviceName"`

	// count of such devices.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:default=1
	// +optional
	Count int `json:"count,omitempty"`
}

// KubeVirtNodePoolStatus is what was made for a pool of virtual machines.
type KubeVirtNodePoolStatus struct {
	// cacheName is the volume that holds the disk image.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	CacheName string `json:"cacheName,omitempty"`

	// credentials that the pool was made with.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="credentials are immutable"
	// +optional
	Credentials *KubevirtPlatformCredentials `json:"credentials,omitempty"`
}
