// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// HostedNamespace returns a hosted namespace with its owner and user ID, each of which may be empty for none.
func HostedNamespace(name, owner, uid string) *corev1.Namespace {
	annotations := map[string]string{}
	for key, value := range map[string]string{
		hyperv1.HostedClusterAnnotation: owner, hyperv1.DefaultSecurityContextUIDAnnotation: uid,
	} {
		if value != "" {
			annotations[key] = value
		}
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: annotations, Labels: map[string]string{hyperv1.ControlPlaneNamespaceLabel: "true"},
	}}
}

// serving is a client whose server has additional kinds.
type serving struct {
	client.Client
	kinds meta.RESTMapper
}

func (s serving) RESTMapper() meta.RESTMapper { return s.kinds }

// AssigningUsers returns a client for a management cluster that serves OpenShift's SecurityContextConstraints.
func AssigningUsers(c client.Client) client.Client {
	version := schema.GroupVersion{Group: "security.openshift.io", Version: "v1"}
	kinds := meta.NewDefaultRESTMapper([]schema.GroupVersion{version})
	kinds.Add(version.WithKind("SecurityContextConstraints"), meta.RESTScopeRoot)
	return serving{c, kinds}
}
