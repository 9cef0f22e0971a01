// SPDX-License-Identifier: Apache-2.0

package managementnetwork_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/support/managementnetwork"
)

func TestRecent(t *testing.T) {
	t.Parallel()
	g, now, requests := NewWithT(t), time.Now(), 0
	c := cluster(apiServer("192.168.0.10")...)
	live := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			requests++
			return c.Get(ctx, key, obj, opts...)
		},
	})
	var recent managementnetwork.Recent
	read := func(after time.Duration) *managementnetwork.Addresses {
		found, err := recent.Read(t.Context(), live, c, now.Add(after))
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	want, err := managementnetwork.Read(t.Context(), c, c)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read(0)).To(Equal(want))
	asked := requests
	g.Expect(read(time.Second)).To(Equal(want))
	g.Expect(requests).To(Equal(asked), "the API server's addresses are remembered")

	g.Expect(c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"},
		Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.9.0/24"}}})).To(Succeed())
	g.Expect(read(2*time.Second).Pods).To(HaveLen(len(want.Pods)+1), "a new node is seen at once")

	service := &corev1.Service{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, service)).To(Succeed())
	service.Spec.ClusterIPs = []string{"10.96.0.2"}
	g.Expect(c.Update(t.Context(), service)).To(Succeed())
	g.Expect(read(time.Minute).API).NotTo(Equal(want.API), "a new address is seen after a while")
}
