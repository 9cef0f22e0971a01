// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// TestCredentialsThatAUserPlanted checks that the operator does not connect with a Secret that a user planted. Version
// 0.1.0 copied a user's Secret called kubevirt-infra-credentials under that name, and connected with it.
func TestCredentialsThatAUserPlanted(t *testing.T) {
	g := NewWithT(t)
	var calls atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	t.Cleanup(server.Close)
	planted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: infraCredentials,
			Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}},
		Data: map[string][]byte{kubeconfigKey: []byte(kubeconfigOf(server))}}
	p := &Platform{infra: infraClusters{guard: local(), timeout: patient}}
	cluster := testCluster(elsewhere())

	credentials, err := p.ReconcileCredentials(t.Context(), testClient(t, planted), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(credentials.Condition.Message).To(
		ContainSubstring("is refused: it may be a copy of an object that a user wrote"))
	g.Expect(credentials.Hash).To(BeEmpty())
	_, err = infraTarget(cluster).kubeconfig(t.Context(), testClient(t, planted.DeepCopy()))
	g.Expect(err).To(HaveOccurred())
	g.Expect(calls.Load()).To(BeZero())

	t.Run("the user's own kubeconfig takes precedence", func(t *testing.T) {
		g := NewWithT(t)
		c := testClient(t, planted.DeepCopy(), userSecret("config", goodKubeconfig))
		raw, err := infraTarget(cluster).kubeconfig(t.Context(), c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).NotTo(ContainSubstring(server.URL))
	})
}
