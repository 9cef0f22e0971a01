// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// NewClient is the client.NewClientFunc of all managers. Its client logs each write that the API server accepted, with
// the verb and the object's name, and never with its content. The line has the values of the context's logger: the
// controller, the reconciled object, and the phase. The client does not log a failed write: the caller handles the
// error.
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config = rest.CopyConfig(config)
		config.WarningHandlerWithContext = warnings{}
	}
	inner, err := client.NewWithWatch(config, options)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(inner, writes()), nil
}

// warnings logs the warnings of the API server about accepted calls. They concern the developers of the product, not
// its users.
type warnings struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	log.FromContext(ctx).V(Writes).Info("Kubernetes warns", "warning", text)
}

func writes() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return wrote(ctx, c, "create", obj, "", c.Create(ctx, obj, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return wrote(ctx, c, "update", obj, "", c.Update(ctx, obj, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return wrote(ctx, c, verbOf(patch), obj, "", c.Patch(ctx, obj, patch, opts...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return applied(ctx, obj, "", c.Apply(ctx, obj, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return wrote(ctx, c, "delete", obj, "", c.Delete(ctx, obj, opts...))
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			return wrote(ctx, c, "delete all", obj, "", c.DeleteAllOf(ctx, obj, opts...))
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, obj, body client.Object, opts ...client.SubResourceCreateOption) error {
			return wrote(ctx, c, "create", obj, sub, c.SubResource(sub).Create(ctx, obj, body, opts...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return wrote(ctx, c, "update", obj, sub, c.SubResource(sub).Update(ctx, obj, opts...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return wrote(ctx, c, verbOf(patch), obj, sub, c.SubResource(sub).Patch(ctx, obj, patch, opts...))
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return applied(ctx, obj, sub, c.SubResource(sub).Apply(ctx, obj, opts...))
		},
	}
}

func verbOf(patch client.Patch) string {
	if patch.Type() == types.ApplyPatchType {
		return "apply"
	}
	return "patch"
}

func wrote(ctx context.Context, c client.Client, verb string, obj client.Object, subresource string, err error) error {
	logger := log.FromContext(ctx).V(Writes)
	if err != nil || !logger.Enabled() {
		return err
	}
	logger.Info("Wrote to Kubernetes", details(verb, kindOf(c, obj), client.ObjectKeyFromObject(obj).String(), subresource)...)
	return nil
}

// named has the common methods of the generated apply configurations.
type named interface {
	GetKind() *string
	GetName() *string
	GetNamespace() *string
}

func applied(ctx context.Context, obj runtime.ApplyConfiguration, subresource string, err error) error {
	logger := log.FromContext(ctx).V(Writes)
	if err != nil || !logger.Enabled() {
		return err
	}
	kind, object := fmt.Sprintf("%T", obj), ""
	switch o := obj.(type) {
	case named:
		kind, object = value(o.GetKind()), value(o.GetNamespace())+"/"+value(o.GetName())
	case client.Object:
		kind, object = o.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(o).String()
	}
	logger.Info("Wrote to Kubernetes", details("apply", kind, object, subresource)...)
	return nil
}

func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func details(verb, kind, object, subresource string) []any {
	all := []any{"verb", verb, "kind", kind, "object", object}
	if subresource != "" {
		all = append(all, "subresource", subresource)
	}
	return all
}

func kindOf(c client.Client, obj client.Object) string {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return gvk.Kind
}
