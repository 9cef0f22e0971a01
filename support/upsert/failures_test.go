// SPDX-License-Identifier: Apache-2.0

package upsert_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/support/upsert"
)

var (
	errBusy    = errors.New("the server is busy")
	configMaps = schema.GroupResource{Resource: "configmaps"}
)

// api is an API server that fails as configured, and counts the write requests.
type api struct {
	get, create, update, patch, remove error
	// applies are the responses to server-side apply, in order.
	applies []error
	writes  []string
	applied []map[string]any
}

func (a *api) client(objects ...client.Object) client.Client {
	wrote := func(verb string, err error, otherwise func() error) error {
		a.writes = append(a.writes, verb)
		if err != nil {
			return err
		}
		return otherwise()
	}
	return fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if a.get != nil {
				return a.get
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return wrote("create", a.create, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return wrote("update", a.update, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return wrote("patch", a.patch, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return wrote("delete", a.remove, func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return wrote(sub, a.patch, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			a.writes = append(a.writes, "apply")
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			if err != nil {
				return err
			}
			a.applied = append(a.applied, fields)
			return a.applies[min(len(a.applied), len(a.applies))-1]
		},
	}).Build()
}

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}, Data: data}
}

func TestObjectThatFails(t *testing.T) {
	conflict := apierrors.NewConflict(configMaps, "demo", errBusy)
	change := func(obj *corev1.ConfigMap) func() error {
		return func() error { obj.Data = map[string]string{"a": "new"}; return nil }
	}
	for name, tc := range map[string]struct {
		api    api
		there  bool
		mutate func(*corev1.ConfigMap) func() error
		is     error
		says   string
		writes int
	}{
		"the object cannot be read": {api: api{get: errBusy}, there: true, mutate: change, is: errBusy, says: "reading ConfigMap ns/demo"},
		"the mutation returns an error": {there: true, mutate: func(obj *corev1.ConfigMap) func() error {
			return func() error { obj.Data = map[string]string{"half": "done"}; return errBusy }
		}, is: errBusy, says: "building ConfigMap ns/demo"},
		"its name is changed": {there: true, mutate: func(obj *corev1.ConfigMap) func() error {
			return func() error { obj.Name = "other"; return nil }
		}, says: "its name changed to ns/other"},
		"its namespace is changed": {mutate: func(obj *corev1.ConfigMap) func() error {
			return func() error { obj.Namespace = "other"; return nil }
		}, says: "its name changed to other/demo"},
		"the object cannot be created":                   {api: api{create: errBusy}, mutate: change, is: errBusy, says: "creating ConfigMap ns/demo", writes: 1},
		"another client creates the object concurrently": {api: api{create: apierrors.NewAlreadyExists(configMaps, "demo")}, mutate: change, says: "already exists", writes: 1},
		"another writer changed it concurrently":         {api: api{update: conflict}, there: true, mutate: change, is: conflict, says: "updating ConfigMap ns/demo", writes: 1},
	} {
		t.Run("When "+name+", the error should name the object and nothing should be written", func(t *testing.T) {
			g, objects := NewWithT(t), []client.Object{}
			if tc.there {
				objects = append(objects, configMap(map[string]string{"a": "old"}))
			}
			c, obj := tc.api.client(objects...), configMap(nil)
			result, err := upsert.Object(t.Context(), c, obj, tc.mutate(obj))
			g.Expect(result).To(Equal(upsert.Unchanged))
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			if tc.is != nil {
				g.Expect(errors.Is(err, tc.is)).To(BeTrue(), "who calls can tell what it was: %v", err)
			}
			g.Expect(tc.api.writes).To(HaveLen(tc.writes))
			g.Expect(apierrors.IsConflict(err)).To(Equal(tc.is == error(conflict)))
		})
	}
}

func TestNothingToChange(t *testing.T) {
	g, server := NewWithT(t), &api{}
	c := server.client(configMap(map[string]string{"a": "old"}))
	obj := configMap(nil)
	g.Expect(upsert.Object(t.Context(), c, obj, func() error { return nil })).To(Equal(upsert.Unchanged))
	g.Expect(obj.Data).To(HaveKeyWithValue("a", "old"), "the caller gets what is there")
	for _, write := range []func(context.Context, client.Client, client.Object, func()) error{upsert.Patch, upsert.PatchLatest, upsert.Status, upsert.StatusLatest} {
		g.Expect(write(t.Context(), c, obj, func() {})).To(Succeed())
		g.Expect(write(t.Context(), c, obj, func() { obj.Labels = map[string]string{} })).To(Succeed(), "an empty map is none")
	}
	g.Expect(server.writes).To(BeEmpty())
}

// TestLatest checks that a decision based on an outdated object is not written.
func TestLatest(t *testing.T) {
	for name, tc := range map[string]struct {
		write  func(context.Context, client.Client, client.Object, func()) error
		fields bool
	}{"Patch": {upsert.Patch, true}, "PatchLatest": {upsert.PatchLatest, false}} {
		t.Run("When the object was written since it was read, "+name+" should lose no field of another writer", func(t *testing.T) {
			g, c := NewWithT(t), (&api{}).client(configMap(map[string]string{"a": "old"}))
			mine, theirs := configMap(nil), configMap(nil)
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(mine), mine)).To(Succeed())
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
			theirs.Data["b"] = "theirs"
			g.Expect(c.Update(t.Context(), theirs)).To(Succeed())
			err := tc.write(t.Context(), c, mine, func() { mine.Data["a"] = "mine" })
			g.Expect(apierrors.IsConflict(err)).To(Equal(!tc.fields), "%v", err)
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
			g.Expect(theirs.Data).To(HaveKeyWithValue("b", "theirs"), "nobody's field is lost")
			g.Expect(theirs.Data["a"] == "mine").To(Equal(tc.fields))
		})
	}
	for name, write := range map[string]func(context.Context, client.Client, client.Object, func()) error{
		"patching ConfigMap ns/demo": upsert.Patch, "writing the status of ConfigMap ns/demo": upsert.Status,
	} {
		g, obj := NewWithT(t), configMap(map[string]string{"a": "old"})
		c := (&api{patch: errBusy}).client(configMap(nil))
		g.Expect(write(t.Context(), c, obj, func() { obj.Data["a"] = "new" })).To(And(MatchError(errBusy), MatchError(ContainSubstring(name))))
	}
}

func TestGoneThatIsNot(t *testing.T) {
	going := configMap(nil)
	going.Finalizers, going.DeletionTimestamp = []string{"test/keeps"}, &metav1.Time{Time: metav1.Now().Time}
	for name, tc := range map[string]struct {
		api    api
		there  []client.Object
		gone   bool
		fails  error
		writes []string
	}{
		"does not exist":          {gone: true},
		"exists":                  {there: []client.Object{configMap(nil)}, writes: []string{"delete"}},
		"is being deleted":        {there: []client.Object{going}},
		"can't be read":           {api: api{get: errBusy}, fails: errBusy},
		"can't be deleted":        {api: api{remove: errBusy}, there: []client.Object{configMap(nil)}, fails: errBusy, writes: []string{"delete"}},
		"is deleted concurrently": {api: api{remove: apierrors.NewNotFound(configMaps, "demo")}, there: []client.Object{configMap(nil)}, writes: []string{"delete"}},
		"is kept by a webhook":    {api: api{remove: apierrors.NewForbidden(configMaps, "demo", errBusy)}, there: []client.Object{configMap(nil)}, fails: errors.ErrUnsupported, writes: []string{"delete"}},
	} {
		t.Run("When an object "+name+", Gone should report whether it is gone", func(t *testing.T) {
			g := NewWithT(t)
			gone, err := upsert.Gone(t.Context(), tc.api.client(tc.there...), configMap(nil))
			g.Expect(gone).To(Equal(tc.gone))
			g.Expect(err != nil).To(Equal(tc.fails != nil), "%v", err)
			if err != nil {
				g.Expect(err).To(MatchError(ContainSubstring("ConfigMap ns/demo")))
			}
			g.Expect(tc.api.writes).To(Equal(tc.writes))
		})
	}
}

// TestApplyThatIsRefused checks the retry of a rejected apply. Apply retries once, without the structures that the API
// server may have replaced with null, and not again.
func TestApplyThatIsRefused(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "demo", nil)
	there := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "ns", "name": "demo", "labels": map[string]any{"a": "b"}}, "data": map[string]any{"x": "old"}}}
	wanted := func(data map[string]any) *unstructured.Unstructured {
		obj := there.DeepCopy()
		obj.Object["data"] = data
		return obj
	}
	for name, tc := range map[string]struct {
		answers []error
		data    map[string]any
		applies int
		wrote   bool
	}{
		"the server accepts the object":                        {[]error{nil}, map[string]any{"x": "new"}, 1, true},
		"the object is invalid for another reason":             {[]error{invalid}, map[string]any{"x": "new"}, 1, false},
		"a nested object loses its last field":                 {[]error{invalid, nil}, map[string]any{}, 2, true},
		"the object is invalid even without the nested object": {[]error{invalid, invalid, nil}, map[string]any{}, 2, false},
		"the server is busy":                                   {[]error{errBusy, nil}, map[string]any{}, 1, false},
	} {
		t.Run("When "+name+", Apply should report whether it was written", func(t *testing.T) {
			g, server := NewWithT(t), &api{applies: tc.answers}
			wrote, err := upsert.Apply(t.Context(), server.client(there.DeepCopy()), "test", wanted(tc.data))
			g.Expect(wrote).To(Equal(tc.wrote))
			g.Expect(err == nil).To(Equal(tc.wrote), "%v", err)
			g.Expect(server.applied).To(HaveLen(tc.applies))
			if tc.applies == 2 {
				g.Expect(server.applied[1]).NotTo(HaveKey("data"))
				g.Expect(server.applied[1]["metadata"]).To(HaveKeyWithValue("labels", HaveKey("a")), "nothing else is left out")
			}
		})
	}
	t.Run("When the object cannot be read, it should not be written", func(t *testing.T) {
		g, server := NewWithT(t), &api{get: errBusy}
		wrote, err := upsert.Apply(t.Context(), server.client(), "test", configMap(nil))
		g.Expect(wrote).To(BeFalse())
		g.Expect(err).To(And(MatchError(errBusy), MatchError(ContainSubstring("reading ConfigMap ns/demo"))))
		g.Expect(server.writes).To(BeEmpty())
	})
}

func TestAppliedFrom(t *testing.T) {
	g, server := NewWithT(t), &api{applies: []error{nil}}
	c, live := server.client(), configMap(map[string]string{"a": "b"})
	g.Expect(upsert.Apply(t.Context(), c, "test", live)).To(BeTrue())
	for want, obj := range map[bool]*corev1.ConfigMap{true: configMap(map[string]string{"a": "b"}), false: configMap(map[string]string{"a": "c"})} {
		g.Expect(upsert.AppliedFrom(c.Scheme(), live, obj)).To(Equal(want))
	}
	served := configMap(map[string]string{"a": "b"})
	served.UID, served.ResourceVersion, served.Generation, served.CreationTimestamp = "u", "7", 3, metav1.Now()
	g.Expect(upsert.AppliedFrom(c.Scheme(), live, served)).To(BeTrue(), "what only the server writes is no part of a manifest")
	g.Expect(upsert.AppliedFrom(c.Scheme(), configMap(nil), served)).To(BeFalse(), "who has no mark was applied by somebody else")
	_, err := upsert.AppliedFrom(runtime.NewScheme(), live, served)
	g.Expect(err).To(MatchError(ContainSubstring("rendering")))
}
