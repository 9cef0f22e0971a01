// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// TestRestartsThatPod checks that a restart deletes only the observed pod. The member may have been replaced since,
// and its successor must not be restarted.
func TestRestartsThatPod(t *testing.T) {
	g := NewWithT(t)
	live := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-1", UID: "seen"}}
	var asked client.DeleteOptions
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			asked.ApplyOptions(opts)
			return nil
		},
	})
	r := &Reconciler{Client: c}
	g.Expect(r.take(t.Context(), &hyperv1.HostedControlPlane{}, step{action: restart, member: &member{pod: "etcd-1", live: live}})).To(Succeed())
	g.Expect(asked.Preconditions).NotTo(BeNil())
	g.Expect(asked.Preconditions.UID).To(HaveValue(BeEquivalentTo("seen")))
}

// TestResync checks that the requeue interval is short while there is a step to take, and long otherwise.
func TestResync(t *testing.T) {
	for why, want := range map[string]time.Duration{"": 30 * time.Second, "its data is corrupt": 2 * time.Second} {
		NewWithT(t).Expect(resync(&scope{step: step{why: why}})).To(Equal(want), why)
	}
}
