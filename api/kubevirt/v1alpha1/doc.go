// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the Cluster API provider of the platform KubeVirt: KubevirtCluster, KubevirtMachine and
// KubevirtMachineTemplate, as far as the operator writes or reads them. They are written from the wire format of the provider, which
// cannot be imported. What the provider writes into fields that are not here is kept by the API server.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1alpha1
