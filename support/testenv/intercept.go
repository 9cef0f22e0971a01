// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Request is a request of a client.
type Request struct {
	// Verb is get, list, create, update, patch, apply, delete or delete all. For a subresource its name follows, as in
	// "patch status".
	Verb string
	// Of is the object or the list.
	Of runtime.Object
	// Key is zero for a list and for "delete all".
	Key client.ObjectKey
	// Fields are the fields that a patch changes: "metadata.labels.app spec.replicas"; empty for all other verbs.
	Fields string
	// Do sends the request.
	Do func() error
}

// Writes reports whether the request is a write.
func (r Request) Writes() bool { return r.Verb != "get" && r.Verb != "list" }

// String returns the request in the form "patch v1.Secret clusters/demo metadata.labels.app".
func (r Request) String() string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", r.Of), "*")
	if u, ok := r.Of.(interface{ GetKind() string }); ok {
		kind = u.GetKind()
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Verb, kind, r.Key, r.Fields))
}

// Intercept returns a client that calls on in place of each request except watches.
func Intercept(c client.WithWatch, on func(Request) error) client.WithWatch {
	funcs := writes(func(verb string, obj client.Object, do func() error) error {
		return on(Request{Verb: verb, Of: obj, Key: client.ObjectKeyFromObject(obj), Do: do})
	})
	funcs.Patch = func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		return on(Request{Verb: "patch", Of: obj, Key: client.ObjectKeyFromObject(obj), Fields: fields(obj, patch), Do: func() error { return c.Patch(ctx, obj, patch, opts...) }})
	}
	funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		return on(Request{Verb: "get", Of: obj, Key: key, Do: func() error { return c.Get(ctx, key, obj, opts...) }})
	}
	funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		return on(Request{Verb: "list", Of: list, Do: func() error { return c.List(ctx, list, opts...) }})
	}
	funcs.DeleteAllOf = func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
		return on(Request{Verb: "delete all", Of: obj, Do: func() error { return c.DeleteAllOf(ctx, obj, opts...) }})
	}
	return interceptor.NewClient(c, funcs)
}

// writes returns interceptors of the requests that change one object.
func writes(on func(verb string, obj client.Object, do func() error) error) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return on("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return on("update", obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return on("patch", obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return on("apply", applied(obj), func() error { return c.Apply(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return on("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return on("patch "+sub, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return on("update "+sub, obj, func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return on("apply "+sub, applied(obj), func() error { return c.SubResource(sub).Apply(ctx, obj, opts...) })
		},
	}
}

// applied returns the object of an apply configuration.
func applied(obj runtime.ApplyConfiguration) client.Object {
	content, _ := obj.(interface{ UnstructuredContent() map[string]any })
	return &unstructured.Unstructured{Object: content.UnstructuredContent()}
}

// fields returns the fields that a merge patch changes, without the resource version.
func fields(obj client.Object, patch client.Patch) string {
	content := map[string]any{}
	data, err := patch.Data(obj)
	if patch.Type() != types.MergePatchType || err != nil || json.Unmarshal(data, &content) != nil {
		return ""
	}
	var all []string
	var walk func(string, map[string]any)
	walk = func(prefix string, values map[string]any) {
		for key, value := range values {
			if inner, ok := value.(map[string]any); ok {
				walk(prefix+key+".", inner)
			} else if path := prefix + key; path != "metadata.resourceVersion" {
				all = append(all, path)
			}
		}
	}
	walk("", content)
	slices.Sort(all)
	return strings.Join(all, " ")
}
