// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds by which an administrator grants a person access with a client certificate when all else
// fails ("break glass"), and revokes it.
//
// +kubebuilder:object:generate=true
// +groupName=certificates.hypershift.openshift.io
package v1alpha1
