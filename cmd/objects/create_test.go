// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
)

// TestCreate covers servers that fail the first attempt although they may have executed it.
func TestCreate(t *testing.T) {
	pool := func(cluster string) *hyperv1.NodePool {
		return &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers"},
			Spec: hyperv1.NodePoolSpec{ClusterName: cluster}}
	}
	broken := apierrors.NewInternalError(errors.New("no leader"))
	for name, tc := range map[string]struct {
		existing   client.Object
		carriedOut bool
		fails      error
		attempts   int
		exists     bool
	}{
		"the first attempt succeeds":                                {attempts: 1},
		"the server failed and did nothing":                         {fails: broken, attempts: 2},
		"the server failed after it created the object":             {carriedOut: true, fails: broken, attempts: 2},
		"the connection was lost after it created the object":       {carriedOut: true, fails: io.ErrUnexpectedEOF, attempts: 2},
		"an object of another user exists":                          {existing: pool("other"), attempts: 1, exists: true},
		"an object of another user exists, which the retry reveals": {existing: pool("other"), fails: broken, attempts: 2, exists: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, attempts := NewWithT(t), 0
			builder := fake.NewClientBuilder().WithScheme(kube.Scheme)
			if tc.existing != nil {
				builder = builder.WithObjects(tc.existing)
			}
			c := builder.WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch,
				obj client.Object, opts ...client.CreateOption) error {
				attempts++
				if tc.fails == nil || attempts > 1 {
					return c.Create(ctx, obj, opts...)
				}
				if tc.carriedOut {
					created := obj.DeepCopyObject().(client.Object)
					g.Expect(c.Create(ctx, created, opts...)).To(Succeed())
				}
				return tc.fails
			}}).Build()
			err := Create(t.Context(), c, pool("demo"))
			g.Expect(attempts).To(Equal(tc.attempts))
			g.Expect(apierrors.IsAlreadyExists(err)).To(Equal(tc.exists))
			if !tc.exists {
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
	t.Run("a refusal is final", func(t *testing.T) {
		attempts := 0
		c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(interceptor.Funcs{Create: func(context.Context,
			client.WithWatch, client.Object, ...client.CreateOption) error {
			attempts++
			return apierrors.NewBadRequest("no")
		}}).Build()
		NewWithT(t).Expect(apierrors.IsBadRequest(Create(t.Context(), c, pool("demo")))).To(BeTrue())
		NewWithT(t).Expect(attempts).To(Equal(1))
	})
}
