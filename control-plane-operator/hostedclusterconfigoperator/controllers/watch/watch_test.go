// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

func TestAll(t *testing.T) {
	secret := func(namespace, name string, kind corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: kind}
	}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithObjects(
		secret("shop", "a", corev1.SecretTypeOpaque), secret("shop", "b", corev1.SecretTypeTLS), secret("till", "a", corev1.SecretTypeOpaque)).Build()
	opaque := func(s *corev1.Secret) bool { return s.Type == corev1.SecretTypeOpaque }

	t.Run("When objects are listed, it should return a request for each matching object", func(t *testing.T) {
		NewWithT(t).Expect(All(t.Context(), c, &corev1.SecretList{}, opaque)).To(ConsistOf(request("shop", "a"), request("till", "a")))
	})
	t.Run("When a namespace is given, it should list only that namespace", func(t *testing.T) {
		NewWithT(t).Expect(All(t.Context(), c, &corev1.SecretList{}, opaque, client.InNamespace("till"))).To(ConsistOf(request("till", "a")))
	})
	t.Run("When no object matches, it should return no request", func(t *testing.T) {
		NewWithT(t).Expect(All(t.Context(), c, &corev1.SecretList{}, func(*corev1.Secret) bool { return false })).To(BeEmpty())
	})
	t.Run("When objects cannot be listed, it should return no request", func(t *testing.T) {
		dead := interceptor.NewClient(c, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("the server is dead")
		}})
		NewWithT(t).Expect(All(t.Context(), dead, &corev1.SecretList{}, opaque)).To(BeEmpty())
	})
}

// TestOne checks that events of any object lead to the same request, which is queued only once.
func TestOne(t *testing.T) {
	g := NewWithT(t)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	key := client.ObjectKey{Namespace: "clusters-demo", Name: "demo"}
	one, node := One(key), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	g.Expect(Start(key).Start(t.Context(), queue)).To(Succeed())
	one.Create(t.Context(), event.CreateEvent{Object: node}, queue)
	one.Update(t.Context(), event.UpdateEvent{ObjectOld: node, ObjectNew: node}, queue)
	one.Delete(t.Context(), event.DeleteEvent{Object: node}, queue)
	g.Expect(queue.Len()).To(Equal(1))
	got, _ := queue.Get()
	g.Expect(got.NamespacedName).To(Equal(key))
}

func TestComingAndGoing(t *testing.T) {
	g, node := NewWithT(t), &corev1.Node{}
	g.Expect(ComingAndGoing().Create(event.CreateEvent{Object: node})).To(BeTrue())
	g.Expect(ComingAndGoing().Delete(event.DeleteEvent{Object: node})).To(BeTrue())
	g.Expect(ComingAndGoing().Update(event.UpdateEvent{ObjectOld: node, ObjectNew: node})).To(BeFalse())
}
