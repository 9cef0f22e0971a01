// SPDX-License-Identifier: Apache-2.0

package operatorwebhook

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// ConversionPath is where objects of Cluster API are sent that are wanted in another version.
const ConversionPath = "/convert"

// Convert has the API server ask the operator in namespace whenever an object of this kind is read or written in another version than
// the stored one. The authority is the operator's to add.
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

// OnlyStored takes the other versions away, for an installation in which nothing converts. Without a converter the API server would
// only rename the version, and drop what the other one calls by another name.
func OnlyStored(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Storage
	}
	crd.Spec.Conversion = nil
}

// Converts tells whether the API server asks the operator in namespace about objects of this kind.
func Converts(crd *apiextensionsv1.CustomResourceDefinition, namespace string) bool {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return false
	}
	service := conversion.Webhook.ClientConfig.Service
	return service != nil && service.Namespace == namespace && service.Name == Service
}
