// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the kinds of the Cluster API infrastructure provider for MAAS: MaasCluster, MaasMachine and
// MaasMachineTemplate. Their wire format is a superset of that of the upstream provider v0.9 (contract v1beta2).
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta1
