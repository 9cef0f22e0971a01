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

// HashAnnotation holds a hash of the last applied manifest. The hash shows that a field was removed from the manifest.
// The object alone cannot distinguish such a field from one that another writer set.
const HashAnnotation = "hypershift.openshift.io/manifest-hash"

// Apply brings an object to the complete state in obj, by server-side apply. The API server records owner as the owner
// of the fields in obj. A field that is removed from obj is removed from the object, and a field that another writer
// changed is reset. A field that obj does not set stays with its writer. Apply makes no API write if the object already
// matches. Afterwards obj is the object as on the server, and never older than the write. Apply reports whether it
// wrote.
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

// read returns the object as the client sees it, and nil if it does not exist.
func read(ctx context.Context, c client.Client, obj client.Object) (any, error) {
	live := blank(obj)
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// A cached read does not set the kind.
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

// desired renders obj with its kind and its hash, and without the fields that only the server writes.
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

// dropEmptied drops structures whose last field is removed, and reports whether there were any. API servers replace an
// empty structure that had fields with null (https://github.com/kubernetes/kubernetes/issues/117447), which the schemas
// of custom resources refuse.
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

// AppliedFrom reports whether live was last applied from exactly this manifest.
func AppliedFrom(scheme *runtime.Scheme, live, obj client.Object) (bool, error) {
	wanted, err := desired(scheme, obj)
	if err != nil {
		return false, fmt.Errorf("rendering %T %s: %w", obj, obj.GetName(), err)
	}
	hash, _, err := unstructured.NestedString(wanted, "metadata", "annotations", HashAnnotation)
	return live.GetAnnotations()[HashAnnotation] == hash, err
}
