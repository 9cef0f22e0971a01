// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the kinds of hypershift.openshift.io/v1beta1: HostedCluster and NodePool, which users
// write, and HostedControlPlane, ControlPlaneComponent and HCPEtcdBackup, which the operators keep.
//
// +kubebuilder:object:generate=true
// +groupName=hypershift.openshift.io
package v1beta1
