// SPDX-License-Identifier: Apache-2.0

// Package operatorwebhook says how the API server calls the operator: for defaults that depend on the cluster, and to convert objects
// of Cluster API. The installer writes that to the cluster, and the operator adds the certificate authority.
package operatorwebhook

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Names that the installer and the operator share.
const (
	// Name is the MutatingWebhookConfiguration.
	Name = "hypershift.openshift.io"
	// Service is the operator's Service, in the operator's namespace.
	Service = "operator"
	// ServicePort is the port of the Service, and Port the one of the operator's pod behind it.
	ServicePort = 443
	Port        = 9443
	// HostedClusterPath and NodePoolPath are where objects of the two kinds are sent.
	HostedClusterPath = "/mutate-hypershift-openshift-io-v1beta1-hostedcluster"
	NodePoolPath      = "/mutate-hypershift-openshift-io-v1beta1-nodepool"
)

// timeoutSeconds bounds how long a user waits for an operator that does not answer.
const timeoutSeconds = 15

// Configuration has the API server send new HostedClusters and NodePools to the operator in namespace. An operator that
// does not answer is passed over: the CRDs hold all that is needed to be safe.
func Configuration(namespace string) *admissionv1.MutatingWebhookConfiguration {
	return &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Webhooks: []admissionv1.MutatingWebhook{
			hook(namespace, "hostedclusters", HostedClusterPath),
			hook(namespace, "nodepools", NodePoolPath),
		},
	}
}

func hook(namespace, resource, path string) admissionv1.MutatingWebhook {
	return admissionv1.MutatingWebhook{
		Name: resource + "." + hyperv1.GroupVersion.Group,
		ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
			Namespace: namespace, Name: Service, Path: ptr.To(path), Port: ptr.To[int32](ServicePort),
		}},
		Rules: []admissionv1.RuleWithOperations{{
			// Not updates: what a user takes out of an object must not come back as a choice of ours, such as an upgrade.
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule: admissionv1.Rule{
				APIGroups: []string{hyperv1.GroupVersion.Group}, APIVersions: []string{hyperv1.GroupVersion.Version},
				Resources: []string{resource}, Scope: ptr.To(admissionv1.NamespacedScope),
			},
		}},
		FailurePolicy:           ptr.To(admissionv1.Ignore),
		SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
	}
}
