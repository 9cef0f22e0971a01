// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// golden compares the objects of the provider and Cluster API with testdata/<platform>.yaml in the test's folder.
// UPDATE=1 rewrites the file.
func golden(w *world) {
	var made bytes.Buffer
	for _, obj := range w.manifests() {
		raw, err := yaml.Marshal(obj)
		w.Expect(err).NotTo(HaveOccurred())
		made.WriteString("---\n")
		made.Write(raw)
	}
	got := hashes.ReplaceAll(made.Bytes(), []byte("$1: HASH"))
	file := filepath.Join("testdata", lower(w.subject.Type)+".yaml")
	if os.Getenv("UPDATE") != "" {
		w.Expect(os.WriteFile(file, got, 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	w.Expect(err).NotTo(HaveOccurred())
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		w.t.Errorf("%s differs from what was made (-want +got); UPDATE=1 rewrites it:\n%s", file, diff)
	}
}

// hashes matches values that depend on certificates, which are new in each run.
var hashes = regexp.MustCompile(`(hypershift\.openshift\.io/[a-z.-]*hash|component\.hypershift\.openshift\.io/config-hash): .*`)

// manifests returns the platform's objects in the hosted control plane namespace, without the fields that the API
// server sets.
func (w *world) manifests() []map[string]any {
	w.t.Helper()
	var all []map[string]any
	for _, key := range []struct {
		obj  client.Object
		name string
	}{{&clusterv1.Cluster{}, infraID}, {&rbacv1.Role{}, platform.ProviderName}, {&appsv1.Deployment{}, platform.ProviderName}} {
		err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.hosted(), Name: key.name}, key.obj)
		if apierrors.IsNotFound(err) {
			continue
		}
		w.Expect(err).NotTo(HaveOccurred())
		all = append(all, w.plain(key.obj))
	}
	for _, kind := range w.subject.Plugin.Watched() {
		gvk, err := apiutil.GVKForObject(kind, w.admin.Scheme())
		w.Expect(err).NotTo(HaveOccurred())
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		w.Expect(w.admin.List(w.t.Context(), list, client.InNamespace(w.hosted()))).To(Succeed())
		w.Expect(meta.EachListItem(list, func(item runtime.Object) error {
			all = append(all, w.plain(item.(client.Object)))
			return nil
		})).To(Succeed())
	}
	return all
}

// plain returns an object as a user would write it.
func (w *world) plain(obj client.Object) map[string]any {
	w.t.Helper()
	gvk, err := apiutil.GVKForObject(obj, w.admin.Scheme())
	w.Expect(err).NotTo(HaveOccurred())
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	w.Expect(err).NotTo(HaveOccurred())
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "ownerReferences"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	return u.Object
}
