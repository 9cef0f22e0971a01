// SPDX-License-Identifier: Apache-2.0

package finalizer_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/finalizer"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	ours   = "test.hypershift/ours"
	theirs = "test.hypershift/theirs"
)

// TestTwoWriters writes an object that another writer has changed since it was read.
func TestTwoWriters(t *testing.T) {
	c, err := client.New(testenv.Start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(ctx context.Context, obj client.Object) error { return finalizer.Add(ctx, c, obj, ours, nil) }
	remove := func(ctx context.Context, obj client.Object) error { return finalizer.Remove(ctx, c, obj, ours) }
	for _, tc := range []struct {
		name                string
		before, after, want []string
		act                 func(context.Context, client.Object) error
		conflict            bool
	}{
		{name: "When another writer adds a finalizer concurrently, it should not drop it when adding ours",
			after: []string{theirs}, act: add, want: []string{theirs}, conflict: true},
		{name: "When another writer adds a finalizer concurrently, it should not drop it when removing ours",
			before: []string{ours}, after: []string{ours, theirs}, act: remove, want: []string{ours, theirs}, conflict: true},
		{name: "When another writer removes its finalizer concurrently, it should not restore it",
			before: []string{theirs}, act: add, conflict: true},
		{name: "When ours is removed concurrently, it should not restore it when removing it again",
			before: []string{theirs, ours}, after: []string{theirs}, act: remove, want: []string{theirs}, conflict: true},
		{name: "When nothing else is written concurrently, it should add ours and keep theirs",
			before: []string{theirs}, after: []string{theirs}, act: add, want: []string{theirs, ours}},
		{name: "When nothing else is written concurrently, it should remove only ours",
			before: []string{theirs, ours}, after: []string{theirs, ours}, act: remove, want: []string{theirs}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "writers-", Namespace: "default", Finalizers: tc.before}}
			g.Expect(c.Create(ctx, obj)).To(Succeed())
			cached := obj.DeepCopy()
			obj.Finalizers = tc.after
			g.Expect(c.Update(ctx, obj)).To(Succeed())

			err := tc.act(ctx, cached)
			g.Expect(apierrors.IsConflict(err)).To(Equal(tc.conflict), "%v", err)
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
			g.Expect(obj.Finalizers).To(Equal(tc.want))
		})
	}
	t.Run("When the finalizer exists already, it should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gone", Namespace: "default", Finalizers: []string{ours}}}
		g.Expect(add(t.Context(), obj)).To(Succeed(), "a write would fail: there is no such object")
	})
	t.Run("When the object is gone, it should succeed without removing anything", func(t *testing.T) {
		g := NewWithT(t)
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gone", Namespace: "default", Finalizers: []string{ours}, ResourceVersion: "1"}}
		g.Expect(remove(t.Context(), obj)).To(Succeed())
	})
}
