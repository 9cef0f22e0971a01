// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestWrite(t *testing.T) {
	objs := []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, Data: map[string]string{"k": "v"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c"}, Data: map[string][]byte{"k": []byte("sesame")}},
	}
	const configMap = "---\napiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n  name: b\n  namespace: a\n"
	tests := []struct {
		name      string
		sensitive bool
		want      string
	}{
		{"When sensitive output is off, it should omit Secrets", false, configMap},
		{"When sensitive output is on, it should print Secrets", true, configMap + "---\napiVersion: v1\ndata:\n  k: c2VzYW1l\nkind: Secret\nmetadata:\n  name: c\n  namespace: a\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			var out strings.Builder
			g.Expect(Write(&out, objs, tt.sensitive)).To(Succeed())
			g.Expect(out.String()).To(Equal(tt.want))
		})
	}
}

func TestToUnstructuredLeavesOutTheServersPart(t *testing.T) {
	g := NewWithT(t)
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	hc.Status.IgnitionEndpoint = "somewhere"
	u, err := ToUnstructured(hc)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(u.GetKind()).To(Equal("HostedCluster"))
	g.Expect(u.Object).NotTo(HaveKey("status"))
	g.Expect(u.Object["metadata"]).NotTo(HaveKey("creationTimestamp"))
}

func TestDescribe(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Describe(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})).To(Equal("Namespace a"))
	g.Expect(Describe(&hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})).To(Equal("NodePool a/b"))
}
