// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestUntil(t *testing.T) {
	t.Run("When the condition becomes true, it should return", func(t *testing.T) {
		g := NewWithT(t)
		calls := 0
		g.Expect(Until(t.Context(), func(context.Context) error {
			if calls++; calls < 3 {
				return errors.New("not yet")
			}
			return nil
		})).To(Succeed())
		g.Expect(calls).To(Equal(3))
	})
	t.Run("When the context ends, the error should say why and what was missing", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("gave up"))
		err := Until(ctx, func(context.Context) error { return errors.New("no node") })
		NewWithT(t).Expect(err).To(MatchError("gave up: no node"))
	})
}

func TestGet(t *testing.T) {
	g := NewWithT(t)
	status := http.StatusServiceUnavailable
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	g.Expect(get(t.Context(), server.Client(), server.URL)).To(MatchError(ContainSubstring("503")))
	status = http.StatusOK
	g.Expect(get(t.Context(), server.Client(), server.URL)).To(Succeed())
}

func TestWaitNode(t *testing.T) {
	wait := func(t *testing.T, objects ...client.Object) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("gave up"))
		return WaitNode(ctx, fake.NewClientBuilder().WithObjects(objects...).Build(), "management")
	}
	withReady := func(conditions ...corev1.NodeCondition) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "management"}, Status: corev1.NodeStatus{Conditions: conditions}}
	}
	t.Run("When the node is Ready, it should return", func(t *testing.T) {
		NewWithT(t).Expect(wait(t, withReady(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}))).To(Succeed())
	})
	t.Run("When the node is not Ready, the error should include the kubelet's message", func(t *testing.T) {
		err := wait(t, withReady(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "no network"}))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no network")))
	})
	t.Run("When the kubelet has not reported yet, the error should say so", func(t *testing.T) {
		NewWithT(t).Expect(wait(t, withReady())).To(MatchError(ContainSubstring("has not reported yet")))
	})
	t.Run("When the node does not exist, the error should say so", func(t *testing.T) {
		NewWithT(t).Expect(wait(t)).To(MatchError(ContainSubstring("not found")))
	})
}
