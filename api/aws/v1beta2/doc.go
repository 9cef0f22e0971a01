// SPDX-License-Identifier: Apache-2.0

// Package v1beta2 holds the kinds of the Cluster API provider of the platform AWS: AWSCluster, AWSMachine and AWSMachineTemplate, as
// far as the operator writes or reads them. They are written from the wire format of the provider, whose module would bring the client
// libraries of AWS along. Their CRDs are the provider's own and have all its fields. An update of a complete object of these
// types could lose fields that are not here. The operator therefore updates only objects that it owns, and patches others.
//
// +kubebuilder:object:generate=true
// +kubebuilder:skip
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta2
