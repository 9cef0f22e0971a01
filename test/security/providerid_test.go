// SPDX-License-Identifier: Apache-2.0

package security

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
)

// TestProviderIDOfAnotherMachine checks an attack of root on a worker: it registers its Node as a machine that MAAS is
// deploying.
func TestProviderIDOfAnotherMachine(t *testing.T) {
	g := newGuest(t, "providerid")
	g.configured()
	g.kubelets()
	kubelet, provider := g.by(g.users("system:node:worker-1", "system:nodes")), g.by(g.users(pki.ProviderUser))
	node := func(id string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}, Spec: corev1.NodeSpec{ProviderID: id}}
	}
	// An API server learns of the policy through a watch.
	g.Eventually(func() bool {
		return apierrors.IsForbidden(kubelet.Create(t.Context(), node("maas:///az1/victim"), client.DryRunAll))
	}).WithTimeout(patience).Should(BeTrue())
	g.Expect(kubelet.Create(t.Context(), node(""))).To(Succeed(), "a node joins without it")
	take := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"providerID":"maas:///az1/victim"}}`))
	g.Expect(apierrors.IsForbidden(kubelet.Patch(t.Context(), node(""), take))).To(BeTrue())
	own := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"providerID":"maas:///az1/own"}}`))
	g.mayIn(provider, "patch", "", "nodes", "")
	g.Expect(provider.Patch(t.Context(), node(""), own)).To(Succeed(), "the provider of machines writes it")
	other := node("other:///x")
	other.Name = "worker-2"
	g.Expect(kubelet.Create(t.Context(), other, client.DryRunAll)).To(Succeed(), "provider IDs of others are none of ours")
}
