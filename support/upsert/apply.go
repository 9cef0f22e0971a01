// SPDX-License-Identifier: Apache-2.0

package upsert

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// HashAnnotation holds a hash of the manifest that an object was last applied with. With it a field that was taken out of
// the manifest is noticed, which the object alone cannot tell from a field that someone else set.
const HashAnnotation = "hypershift.openshift.io/manifest-hash"

// Apply brings an object to what obj says, all of it, by server-side apply. The API server keeps for owner the fields that
// obj sets: one that leaves obj leaves the object, one that somebody changed is put right, and one that obj does not set
// is its writer's. It makes no API write when the object is so already. Afterwards obj is the object as the server has it:
// never older than what was written. Apply tells whether it wrote.
func Apply(ctx context.Context, c client.Client, owner string, obj client.Object) (bool, error) {
	what := describe(c, obj)
	wanted, err := desired(c.Scheme(), obj)
	if err != nil {
		return false, fmt.Errorf("rendering %s: %w", what, err)
	}
	current, err := read(ctx, c, obj)
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", what, err)
	}
	if covers(current, wanted) {
		return false, replace(obj, current)
	}
	apply := &unstructured.Unstructured{Object: wanted}
	send := func() error {
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(apply), client.FieldOwner(owner), client.ForceOwnership)
	}
	if err = send(); apierrors.IsInvalid(err) && dropEmptied(wanted, current) {
		err = send()
	}
	if err != nil {
		return false, fmt.Errorf("applying %s: %w", what, err)
	}
	return true, replace(obj, apply.Object)
}

// read returns the object as the client sees it, and nil when it does not exist.
func read(ctx context.Context, c client.Client, obj client.Object) (any, error) {
	live := blank(obj)
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// A cached read leaves the kind out.
	live.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return runtime.DefaultUnstructuredConverter.ToUnstructured(live)
}

func blank(obj client.Object) client.Object {
	fresh := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if u, is := fresh.(*unstructured.Unstructured); is {
		u.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	}
	return fresh
}

func replace(obj client.Object, content any) error {
	fresh := blank(obj)
	fields, _ := content.(map[string]any)
	if u, is := obj.(*unstructured.Unstructured); is {
		u.Object = fields
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, fresh); err != nil {
		return fmt.Errorf("reading the answer about %s: %w", obj.GetName(), err)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(fresh).Elem())
	return nil
}

// desired renders obj with its kind and its own hash, and without what only the server writes.
func desired(scheme *runtime.Scheme, obj client.Object) (map[string]any, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	delete(wanted, "status")
	for _, field := range []string{"creationTimestamp", "resourceVersion", "uid", "managedFields", "generation"} {
		unstructured.RemoveNestedField(wanted, "metadata", field)
	}
	dropNulls(wanted)
	raw, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	hash := fnv.New64a()
	hash.Write(raw)
	err = unstructured.SetNestedField(wanted, fmt.Sprintf("%016x", hash.Sum64()), "metadata", "annotations", HashAnnotation)
	return wanted, err
}

// dropNulls removes the nulls that Go types without omitempty leave behind, such as a Pod template's creation time.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if field == nil {
				delete(v, key)
				continue
			}
			dropNulls(field)
		}
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
}

// dropEmptied leaves structures out that are to lose their last field, and tells whether there were any. API servers make null of an empty
// structure that had fields (https://github.com/kubernetes/kubernetes/issues/117447), which the schemas of custom resources refuse.
func dropEmptied(wanted map[string]any, current any) (dropped bool) {
	have, _ := current.(map[string]any)
	for key, value := range wanted {
		fields, is := value.(map[string]any)
		had, was := have[key].(map[string]any)
		if !is || !was || len(had) == 0 {
			continue
		}
		if len(fields) == 0 || dropEmptied(fields, had) {
			dropped = true
		}
		if len(fields) == 0 {
			delete(wanted, key)
		}
	}
	return dropped
}

// AppliedFrom tells whether live was last applied from exactly this manifest.
func AppliedFrom(scheme *runtime.Scheme, live, obj client.Object) (bool, error) {
	wanted, err := desired(scheme, obj)
	if err != nil {
		return false, fmt.Errorf("rendering %T %s: %w", obj, obj.GetName(), err)
	}
	hash, _, err := unstructured.NestedString(wanted, "metadata", "annotations", HashAnnotation)
	return live.GetAnnotations()[HashAnnotation] == hash, err
}
