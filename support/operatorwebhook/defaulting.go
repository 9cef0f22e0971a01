// SPDX-License-Identifier: Apache-2.0

// Package operatorwebhook configures how the API server calls the operator: for defaults that depend on the cluster,
// and to convert Cluster API objects. The installer writes the configuration, and the operator adds the certificate
// authority.
package operatorwebhook

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Names shared by the installer and the operator.
const (
	// Name is the name of the MutatingWebhookConfiguration.
	Name = "hypershift.openshift.io"
	// Service is the name of the operator's Service, in the operator's namespace.
	Service = "operator"
	// ServicePort is the port of the Service, and Port is the port of the operator's pod.
	ServicePort = 443
	Port        = 9443
	// HostedClusterPath and NodePoolPath are the paths to which the API server sends objects of the two kinds.
	HostedClusterPath = "/mutate-hypershift-openshift-io-v1beta1-hostedcluster"
	NodePoolPath      = "/mutate-hypershift-openshift-io-v1beta1-nodepool"
)

// timeoutSeconds limits how long a user's request waits for an operator that does not answer.
const timeoutSeconds = 15

// Configuration makes the API server send new HostedClusters and NodePools to the operator in namespace. The API server
// skips an operator that does not answer: the CRDs contain everything that safety requires.
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
			// Updates are excluded: a field that a user removes from an object must not return as an operator default, such as
			// an upgrade.
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
