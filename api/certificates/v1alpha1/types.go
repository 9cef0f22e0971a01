// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Signers of break glass certificates.
const (
	// CustomerBreakGlassSigner signs certificates of the cluster's own administrators.
	CustomerBreakGlassSigner = "customer-break-glass"
	// SREBreakGlassSigner signs certificates of those who run the management cluster.
	SREBreakGlassSigner = "sre-break-glass"
)

// Conditions of a CertificateRevocationRequest.
const (
	SignerClassValidType            = "SignerClassValid"
	RootCertificatesRegeneratedType = "RootCertificatesRegenerated"
	LeafCertificatesRegeneratedType = "LeafCertificatesRegenerated"
	NewCertificatesTrustedType      = "NewCertificatesTrusted"
	PreviousCertificatesRevokedType = "PreviousCertificatesRevoked"
)

// CertificateSigningRequestApproval approves, by being there, the CertificateSigningRequest of its name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=certificatesigningrequestapprovals,shortName=csra;csras,scope=Namespaced
type CertificateSigningRequestApproval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is empty.
	//
	// +optional
	Spec CertificateSigningRequestApprovalSpec `json:"spec,omitempty"`

	// status is empty.
	//
	// +optional
	Status CertificateSigningRequestApprovalStatus `json:"status,omitempty"`
}

// CertificateSigningRequestApprovalSpec is empty.
type CertificateSigningRequestApprovalSpec struct{}

// CertificateSigningRequestApprovalStatus is empty.
type CertificateSigningRequestApprovalStatus struct{}

// CertificateSigningRequestApprovalList is a list of CertificateSigningRequestApprovals.
//
// +kubebuilder:object:root=true
type CertificateSigningRequestApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CertificateSigningRequestApproval `json:"items"`
}

// CertificateRevocationRequest revokes all certificates of a signer by replacing the signer.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=certificaterevocationrequests,shortName=crr;crrs,scope=Namespaced
type CertificateRevocationRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which signer to replace.
	//
	// +optional
	Spec CertificateRevocationRequestSpec `json:"spec,omitempty"`

	// status tells how far that is.
	//
	// +optional
	Status CertificateRevocationRequestStatus `json:"status,omitempty"`
}

// CertificateRevocationRequestSpec says which signer to replace.
type CertificateRevocationRequestSpec struct {
	// signerClass is the signer whose certificates are revoked.
	//
	// +kubebuilder:validation:Enum=customer-break-glass;sre-break-glass
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="signerClass is immutable: create another CertificateRevocationRequest"
	// +required
	SignerClass string `json:"signerClass"`
}

// CertificateRevocationRequestStatus tells how far a revocation is.
type CertificateRevocationRequestStatus struct {
	// revocationTimestamp is the time before which certificates are revoked.
	//
	// +optional
	RevocationTimestamp *metav1.Time `json:"revocationTimestamp,omitempty"`

	// previousSigner holds the signer that is being replaced.
	//
	// +optional
	PreviousSigner *corev1.LocalObjectReference `json:"previousSigner,omitempty"`

	// conditions tell how far the revocation is.
	//
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CertificateRevocationRequestList is a list of CertificateRevocationRequests.
//
// +kubebuilder:object:root=true
type CertificateRevocationRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CertificateRevocationRequest `json:"items"`
}
