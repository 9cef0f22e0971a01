// SPDX-License-Identifier: Apache-2.0

// Package objects prints and applies Kubernetes objects.
package objects

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/cmd/kube"
)

// ToUnstructured returns the object as in a manifest: with its kind, without the fields that only a server sets.
func ToUnstructured(obj client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(obj, kube.Scheme)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %T: %w", obj, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	for _, path := range [][]string{
		{"status"}, {"metadata", "creationTimestamp"}, {"spec", "template", "metadata", "creationTimestamp"},
	} {
		unstructured.RemoveNestedField(u.Object, path...)
	}
	return u, nil
}

// Write prints the objects as YAML documents. It omits Secrets unless sensitive is true.
func Write(w io.Writer, objs []client.Object, sensitive bool) error {
	for _, obj := range objs {
		if _, secret := obj.(*corev1.Secret); secret && !sensitive {
			continue
		}
		u, err := ToUnstructured(obj)
		if err != nil {
			return err
		}
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return fmt.Errorf("encode %s: %w", Describe(obj), err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// Apply applies the object server-side and takes ownership of its fields. With dryRun, the server only validates it.
func Apply(ctx context.Context, c client.Client, owner string, obj client.Object, dryRun bool) error {
	u, err := ToUnstructured(obj)
	if err != nil {
		return err
	}
	opts := []client.ApplyOption{client.FieldOwner(owner), client.ForceOwnership}
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...); err != nil {
		return fmt.Errorf("apply %s: %w", Describe(obj), err)
	}
	return nil
}

// Describe returns a readable name of the object: Kind namespace/name.
func Describe(obj client.Object) string {
	kind := fmt.Sprintf("%T", obj)
	if gvk, err := apiutil.GVKForObject(obj, kube.Scheme); err == nil {
		kind = gvk.Kind
	}
	if obj.GetNamespace() == "" {
		return kind + " " + obj.GetName()
	}
	return kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}
