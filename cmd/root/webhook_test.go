// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/kube"
)

// TestDefaultingWebhook installs the webhook, uses it with the operator's service account, and removes it.
func TestDefaultingWebhook(t *testing.T) {
	const name = "hypershift.openshift.io"
	u := newUser(t)
	t.Setenv("HYPERSHIFT_IMAGE", "registry.example/hypershift:1")
	config, err := clientcmd.BuildConfigFromFlags("", u.kubeconfig)
	u.Expect(err).NotTo(HaveOccurred())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:hypershift:operator"}
	operator, err := client.New(config, client.Options{Scheme: kube.Scheme})
	u.Expect(err).NotTo(HaveOccurred())
	args := func() []string {
		deployment := &appsv1.Deployment{}
		u.Expect(u.gets(deployment, "hypershift", "operator")).To(Succeed())
		return deployment.Spec.Template.Spec.Containers[0].Args
	}

	u.succeeds("", "install", "--install-scope", "resources")
	u.Expect(args()).To(ContainElement("--enable-defaulting-webhook"))
	list := &admissionv1.MutatingWebhookConfigurationList{}
	u.Eventually(func() error {
		return operator.List(t.Context(), list, client.MatchingFields{"metadata.name": name})
	}, "1m").Should(Succeed(), "the API server learns of rights a moment later")
	u.Expect(apierrors.IsForbidden(operator.List(t.Context(), &admissionv1.MutatingWebhookConfigurationList{}))).
		To(BeTrue(), "others' webhooks are not the operator's business")
	u.Expect(list.Items).To(HaveLen(1))
	for i := range list.Items[0].Webhooks {
		u.Expect(list.Items[0].Webhooks[i].FailurePolicy).To(HaveValue(Equal(admissionv1.Ignore)))
		list.Items[0].Webhooks[i].ClientConfig.CABundle = config.CAData // Any CA is valid here.
	}
	u.Expect(operator.Update(t.Context(), &list.Items[0])).To(Succeed())

	u.succeeds("", "install", "--install-scope", "resources")
	again := &admissionv1.MutatingWebhookConfiguration{}
	u.Expect(u.gets(again, "", name)).To(Succeed())
	u.Expect(again.ResourceVersion).To(Equal(list.Items[0].ResourceVersion), "a second install leaves the authority to the operator")

	for _, flag := range []string{"--enable-defaulting-webhook=false", "--development"} {
		u.succeeds("", "install", "--install-scope", "resources")
		u.Expect(u.gets(again, "", name)).To(Succeed())
		for range 2 {
			u.succeeds("", "install", "--install-scope", "resources", flag)
			u.Expect(apierrors.IsNotFound(u.gets(again, "", name))).To(BeTrue(), "nothing answers with "+flag)
		}
	}
	u.succeeds("", "install", "--install-scope", "resources", "--enable-defaulting-webhook=false")
	u.Expect(args()).NotTo(ContainElement("--enable-defaulting-webhook"))
}
