// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CertificateSigningRequestApproval is the older home of the like-named kind of certificates.hypershift.openshift.io:
// its presence allows the CertificateSigningRequest of the same name to be signed for break-glass access.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=certificatesigningrequestapprovals,shortName=csra;csras,scope=Namespaced
// +kubebuilder:storageversion
type CertificateSigningRequestApproval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is empty.
	Spec CertificateSigningRequestApprovalSpec `json:"spec,omitempty"`
	// status is empty.
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
