// SPDX-License-Identifier: Apache-2.0

package operatorwebhook

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// ConversionPath is the path to which the API server sends Cluster API objects for conversion to another version.
const ConversionPath = "/convert"

// Convert makes the API server call the operator in namespace to convert objects of this kind between the stored
// version and other versions. The operator adds the certificate authority.
func Convert(crd *apiextensionsv1.CustomResourceDefinition, namespace string) {
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: namespace, Name: Service, Path: ptr.To(ConversionPath), Port: ptr.To[int32](ServicePort),
			}},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

// OnlyStored stops serving the other versions, for an installation without a converter. Without a converter the API
// server would only change the version, and drop fields that have another name in the other version.
func OnlyStored(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Storage
	}
	crd.Spec.Conversion = nil
}

// Converts reports whether the API server calls the operator in namespace to convert objects of this kind.
func Converts(crd *apiextensionsv1.CustomResourceDefinition, namespace string) bool {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return false
	}
	service := conversion.Webhook.ClientConfig.Service
	return service != nil && service.Namespace == namespace && service.Name == Service
}
