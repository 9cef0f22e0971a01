// SPDX-License-Identifier: Apache-2.0

package v1beta1

import corev1 "k8s.io/api/core/v1"

// AWSKMSSpec is keys of the AWS key service.
type AWSKMSSpec struct {
	// region is the region of the keys, e.g. "eu-central-1".
	// +kubebuilder:validation:MaxLength=255
	// +required
	Region string `json:"region"`

	// activeKey encrypts what is written.
	// +required
	ActiveKey AWSKMSKeyEntry `json:"activeKey"`

	// backupKey decrypts what an earlier active key encrypted.
	// +optional
	BackupKey *AWSKMSKeyEntry `json:"backupKey,omitempty"`

	// auth is who may use the keys.
	// +required
	Auth AWSKMSAuthSpec `json:"auth"`
}

// AWSKMSAuthSpec is who may use keys of the AWS key service.
type AWSKMSAuthSpec struct {
	// awsKms is the ARN of the role that the key service is called with.
	// +kubebuilder:validation:MaxLength=2048
	// +required
	AWSKMSRoleARN string `json:"awsKms"`
}

// AWSKMSKeyEntry is one key of the AWS key service.
type AWSKMSKeyEntry struct {
	// arn is the ARN of the key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +required
	ARN string `json:"arn"`
}

// IBMCloudKMSSpec is keys of the IBM Cloud key service.
type IBMCloudKMSSpec struct {
	// region is the region of the keys.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Region string `json:"region"`

	// auth is who may use the keys.
	// +required
	Auth IBMCloudKMSAuthSpec `json:"auth"`

	// keyList is the keys; the one with the highest keyVersion encrypts.
	// +kubebuilder:validation:MaxItems=100
	// +required
	KeyList []IBMCloudKMSKeyEntry `json:"keyList"`
}

// IBMCloudKMSKeyEntry is one key of the IBM Cloud key service.
type IBMCloudKMSKeyEntry struct {
	// crkID is the ID of the customer root key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	CRKID string `json:"crkID"`

	// instanceID is the ID of the key service's instance.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	InstanceID string `json:"instanceID"`

	// correlationID is the ID under which calls are found again in the service's logs.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	CorrelationID string `json:"correlationID"`

	// url is the URL of the key service's instance.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +required
	URL string `json:"url"`

	// keyVersion orders the keys.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	KeyVersion int `json:"keyVersion"`
}

// IBMCloudKMSAuthType says whose credentials are used.
//
// +kubebuilder:validation:Enum=Managed;Unmanaged
type IBMCloudKMSAuthType string

const (
	// IBMCloudKMSManagedAuth uses the credentials of the management cluster's operator.
	IBMCloudKMSManagedAuth IBMCloudKMSAuthType = "Managed"
	// IBMCloudKMSUnmanagedAuth uses the user's credentials.
	IBMCloudKMSUnmanagedAuth IBMCloudKMSAuthType = "Unmanaged"
)

// IBMCloudKMSAuthSpec is who may use keys of the IBM Cloud key service.
//
// +kubebuilder:validation:XValidation:rule=`(self.type == 'Unmanaged') == has(self.unmanaged)`,message=`auth.unmanaged is required when auth.type is Unmanaged, and forbidden otherwise`
// +kubebuilder:validation:XValidation:rule=`!has(self.managed) || self.type == 'Managed'`,message=`auth.managed is forbidden when auth.type is not Managed`
type IBMCloudKMSAuthSpec struct {
	// type says whose credentials are used.
	// +unionDiscriminator
	// +required
	Type IBMCloudKMSAuthType `json:"type"`

	// unmanaged goes with type Unmanaged.
	// +optional
	Unmanaged *IBMCloudKMSUnmanagedAuthSpec `json:"unmanaged,omitempty"`

	// managed goes with type Managed.
	// +optional
	Managed *IBMCloudKMSManagedAuthSpec `json:"managed,omitempty"`
}

// IBMCloudKMSUnmanagedAuthSpec is the user's credentials.
type IBMCloudKMSUnmanagedAuthSpec struct {
	// credentials names a Secret with the key "iam_apikey".
	// +required
	Credentials corev1.LocalObjectReference `json:"credentials"`
}

// IBMCloudKMSManagedAuthSpec is the credentials of the management cluster's operator; it has no fields.
type IBMCloudKMSManagedAuthSpec struct{}
