// SPDX-License-Identifier: Apache-2.0

package scopetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// ErrRefused is the error of a refused request.
var ErrRefused = errors.New("another user has written it")

// Refusals are requests that a server refuses, such as "patch Machine".
type Refusals []string

func (r Refusals) of(verb string, obj any, subresource ...string) error {
	request := append([]string{verb, reflect.TypeOf(obj).Elem().Name()}, subresource...)
	if slices.Contains(r, strings.Join(request, " ")) {
		return ErrRefused
	}
	return nil
}

// Server returns a server with objects that refuses some requests.
func Server(refused Refusals, objects ...client.Object) client.Client {
	whole := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(objects...).WithStatusSubresource(
		&hyperv1.NodePool{}).Build()
	return interceptor.NewClient(whole, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := refused.of("get", obj); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := refused.of("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := refused.of("create", obj); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := refused.of("update", obj); err != nil {
				return err
			}
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := refused.of("patch", obj); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption) error {
			if err := refused.of("patch", obj, name); err != nil {
				return err
			}
			return c.SubResource(name).Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := refused.of("delete", obj); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
	})
}

// Find returns an object of the hosted control plane namespace; nil if it does not exist.
func Find[T client.Object](t *testing.T, c client.Reader, obj T, name string) T {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKey{Namespace: fixture.Hosted("clusters"), Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		var none T
		return none
	}
	return obj
}

// InHosted returns the metadata of an object in the hosted control plane namespace, with annotations.
func InHosted(name string, annotations ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: name}
	for i := 0; i+1 < len(annotations); i += 2 {
		scope.Annotate(&meta, annotations[i], annotations[i+1])
	}
	return meta
}
