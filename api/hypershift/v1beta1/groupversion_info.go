// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "hypershift.openshift.io", Version: "v1beta1"}

	// SchemeBuilder collects the functions that register this package's kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the kinds of this package with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&HostedCluster{}, &HostedClusterList{},
		&NodePool{}, &NodePoolList{},
		&HostedControlPlane{}, &HostedControlPlaneList{},
		&ControlPlaneComponent{}, &ControlPlaneComponentList{},
		&HCPEtcdBackup{}, &HCPEtcdBackupList{},
		&CertificateSigningRequestApproval{}, &CertificateSigningRequestApprovalList{},
		&AWSEndpointService{}, &AWSEndpointServiceList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Resource returns the GroupResource of a resource of this group, for errors about it.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}
