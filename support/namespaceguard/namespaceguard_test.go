// SPDX-License-Identifier: Apache-2.0

package namespaceguard_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/namespaceguard"
	"github.com/openshift/hypershift/support/testenv"
)

func TestGuard(t *testing.T) {
	g := NewWithT(t)
	c, err := client.New(testenv.Start(t), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, obj := range namespaceguard.Objects() {
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	}
	hosted := map[string]string{hyperv1.ControlPlaneNamespaceLabel: "true"}
	tests := []struct {
		name, namespace     string
		labels, annotations map[string]string
		says                string
	}{
		{
			name: "When the namespace has a control plane, it should reject the deletion", namespace: "clusters-demo", labels: hosted,
			annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"},
			says:        "namespace clusters-demo holds the control plane and the machines of HostedCluster clusters/demo: delete that instead",
		},
		{name: "When the namespace has no annotations, it should reject the deletion", namespace: "clusters-bare", labels: hosted, says: "HostedCluster (unknown)"},
		{
			name: "When the operator has released the namespace, it should allow the deletion", namespace: "clusters-released", labels: hosted,
			annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/released", namespaceguard.ReleasedAnnotation: "true"},
		},
		{name: "When it is any other namespace, it should allow the deletion", namespace: "somebody"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tt.namespace, Labels: tt.labels, Annotations: tt.annotations}}
			g.Expect(c.Create(t.Context(), namespace)).To(Succeed())
			if tt.says == "" {
				g.Expect(c.Delete(t.Context(), namespace)).To(Succeed())
				return
			}
			// The API server takes a moment to load a policy.
			g.Eventually(func() error { return c.Delete(t.Context(), namespace, client.DryRunAll) }, time.Minute, 50*time.Millisecond).
				Should(MatchError(ContainSubstring(tt.says)))
		})
	}
}
