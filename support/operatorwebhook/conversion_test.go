// SPDX-License-Identifier: Apache-2.0

package operatorwebhook_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/openshift/hypershift/support/operatorwebhook"
)

func twoVersions() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true}, {Name: "v1beta2", Served: true, Storage: true}}
	return crd
}

func TestConversion(t *testing.T) {
	t.Run("When the operator converts a CRD, it should be identified by its namespace and left to add the CA", func(t *testing.T) {
		g, crd := NewWithT(t), twoVersions()
		g.Expect(operatorwebhook.Converts(crd, "hypershift")).To(BeFalse())
		operatorwebhook.Convert(crd, "hypershift")
		g.Expect(operatorwebhook.Converts(crd, "hypershift")).To(BeTrue())
		g.Expect(operatorwebhook.Converts(crd, "other")).To(BeFalse(), "another installation's is not ours to change")
		client := crd.Spec.Conversion.Webhook.ClientConfig
		g.Expect(crd.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.WebhookConverter))
		g.Expect(client.CABundle).To(BeEmpty())
		g.Expect(client.Service.Path).To(HaveValue(Equal(operatorwebhook.ConversionPath)))
		g.Expect(client.Service.Port).To(HaveValue(BeEquivalentTo(operatorwebhook.ServicePort)))
		g.Expect(crd.Spec.Conversion.Webhook.ConversionReviewVersions).NotTo(BeEmpty(), "an API server refuses a converter without")
		g.Expect(crd.Spec.Versions).To(Equal(twoVersions().Spec.Versions), "both are served")
	})
	t.Run("When there is no conversion webhook, it should serve only the storage version", func(t *testing.T) {
		g, crd := NewWithT(t), twoVersions()
		operatorwebhook.Convert(crd, "hypershift")
		operatorwebhook.OnlyStored(crd)
		g.Expect(crd.Spec.Conversion).To(BeNil())
		served := map[string]bool{}
		for _, version := range crd.Spec.Versions {
			served[version.Name] = version.Served
		}
		g.Expect(served).To(Equal(map[string]bool{"v1beta1": false, "v1beta2": true}))
		crd.Spec.Versions[1].Served = false
		operatorwebhook.OnlyStored(crd)
		g.Expect(crd.Spec.Versions[1].Served).To(BeTrue(), "what is stored can be read")
	})
	for name, change := range map[string]func(*apiextensionsv1.CustomResourceConversion){
		"without a webhook":               func(c *apiextensionsv1.CustomResourceConversion) { *c = apiextensionsv1.CustomResourceConversion{} },
		"by a webhook without an address": func(c *apiextensionsv1.CustomResourceConversion) { c.Webhook.ClientConfig = nil },
		"by a URL":                        func(c *apiextensionsv1.CustomResourceConversion) { c.Webhook.ClientConfig.Service = nil },
		"by another server": func(c *apiextensionsv1.CustomResourceConversion) {
			c.Webhook.ClientConfig.Service.Name = "capi-webhook-service"
		},
	} {
		t.Run("When a CRD is converted "+name+", it should not be attributed to the operator", func(t *testing.T) {
			crd := twoVersions()
			operatorwebhook.Convert(crd, "hypershift")
			change(crd.Spec.Conversion)
			NewWithT(t).Expect(operatorwebhook.Converts(crd, "hypershift")).To(BeFalse())
		})
	}
}
