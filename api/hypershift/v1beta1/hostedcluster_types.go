// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostedCluster is one Kubernetes or OpenShift cluster whose control plane runs as pods on the management cluster.
// Its worker nodes are described by NodePools that name it in spec.clusterName.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostedclusters,shortName=hc;hcs,scope=Namespaced,categories=hypershift
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".status.version.history[?(@.state==\"Completed\")].version",description="Version that the cluster runs"
// +kubebuilder:printcolumn:name="CP Version",type="string",JSONPath=".status.controlPlaneVersion.history[?(@.state==\"Completed\")].version",description="Version that the control plane runs"
// +kubebuilder:printcolumn:name="KubeConfig",type="string",JSONPath=".status.kubeconfig.name",description="Secret that holds the admin kubeconfig"
// +kubebuilder:printcolumn:name="Progress",type="string",JSONPath=".status.version.history[?(@.state!=\"\")].state",description="State of the last rollout"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status",description="Whether the control plane serves"
// +kubebuilder:printcolumn:name="Progressing",type="string",JSONPath=".status.conditions[?(@.type==\"Progressing\")].status",description="Whether the cluster is moving to what its spec says"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].message",description="Why the control plane is (not) available"
// +kubebuilder:printcolumn:name="CP Progress",type="string",priority=1,JSONPath=".status.controlPlaneVersion.history[0].state",description="State of the control plane's last rollout"
// +kubebuilder:printcolumn:name="DP Progress",type="string",priority=1,JSONPath=".status.version.history[0].state",description="State of the data plane's last rollout"
// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() || has(self.spec)`,message=`spec is required`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() || size(self.metadata.name) <= 61`,message=`metadata.name must have at most 61 characters, so that the namespace <namespace>-<name> of the control plane can be made`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.spec) || !has(oldSelf.spec.infraID) || (has(self.spec) && has(self.spec.infraID))`,message=`spec.infraID must not be removed once it is set`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.spec) || !has(oldSelf.spec.clusterID) || (has(self.spec) && has(self.spec.clusterID))`,message=`spec.clusterID must not be removed once it is set`
type HostedCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the cluster should be.
	Spec HostedClusterSpec `json:"spec,omitempty"`
	// status is what the cluster was last seen to be.
	Status HostedClusterStatus `json:"status,omitempty"`
}

// HostedClusterList is a list of HostedClusters.
//
// +kubebuilder:object:root=true
type HostedClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostedCluster `json:"items"`
}
