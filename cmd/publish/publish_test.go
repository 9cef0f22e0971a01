package publish

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestFindAddress(t *testing.T) {
	t.Run("When a node is Ready it should take its address", func(t *testing.T) {
		g := NewWithT(t)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
		}}
		g.Expect(FindAddress(t.Context(), fake.NewClientBuilder().WithObjects(node).Build())).To(Equal("10.0.0.1"))
	})
	t.Run("When no node is Ready it should say which flag to set", func(t *testing.T) {
		_, err := FindAddress(t.Context(), fake.NewClientBuilder().Build())
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("--external-api-server-address")))
	})
}

func TestServices(t *testing.T) {
	g := NewWithT(t)
	g.Expect(NodePort("10.0.0.1")).To(HaveLen(5))
	g.Expect(NodePort("10.0.0.1")).To(HaveEach(HaveField("ServicePublishingStrategy.NodePort.Address", "10.0.0.1")))
	g.Expect(LoadBalancer()).To(HaveLen(4))
}
