// SPDX-License-Identifier: Apache-2.0

package operatorwebhook_test

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/openshift/hypershift/support/operatorwebhook"
)

func TestConfiguration(t *testing.T) {
	g := NewWithT(t)
	config := operatorwebhook.Configuration("other")
	paths := map[string]string{}
	for _, hook := range config.Webhooks {
		g.Expect(hook.FailurePolicy).To(HaveValue(Equal(admissionv1.Ignore)), "an operator that is down must block nobody")
		g.Expect(hook.SideEffects).To(HaveValue(Equal(admissionv1.SideEffectClassNone)), "dry runs are answered too")
		g.Expect(hook.TimeoutSeconds).To(HaveValue(BeEquivalentTo(15)))
		g.Expect(hook.ClientConfig.CABundle).To(BeEmpty(), "the operator's to set")
		g.Expect(hook.ClientConfig.Service.Namespace).To(Equal("other"))
		g.Expect(hook.ClientConfig.Service.Port).To(HaveValue(BeEquivalentTo(443)))
		g.Expect(hook.Rules).To(HaveLen(1))
		g.Expect(hook.Rules[0].Operations).To(ConsistOf(admissionv1.Create))
		paths[hook.Rules[0].Resources[0]] = *hook.ClientConfig.Service.Path
	}
	g.Expect(paths).To(Equal(map[string]string{
		"hostedclusters": "/mutate-hypershift-openshift-io-v1beta1-hostedcluster",
		"nodepools":      "/mutate-hypershift-openshift-io-v1beta1-nodepool",
	}))
}
