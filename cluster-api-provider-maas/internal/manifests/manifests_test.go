// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/manifests"
)

func rendered(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := manifests.Release{Image: "quay.io/example/hypershift:1", Version: "v1.4.2"}.Render()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func objects(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(u); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
}

func into[T any](t *testing.T, u *unstructured.Unstructured) *T {
	t.Helper()
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, out, true); err != nil {
		t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
	}
	return out
}

func TestComponents(t *testing.T) {
	g := NewWithT(t)
	kinds := map[string]int{}
	for _, u := range objects(t, rendered(t)["infrastructure-components.yaml"]) {
		kinds[u.GetKind()]++
		g.Expect(u.GetLabels()).To(HaveKeyWithValue("cluster.x-k8s.io/provider", "infrastructure-maas"), u.GetName())
		switch u.GetKind() {
		case "CustomResourceDefinition":
			crd := into[apiextensionsv1.CustomResourceDefinition](t, u)
			g.Expect(crd.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/v1beta2", "v1beta1"), "the contract")
		case "Deployment":
			deployment := into[appsv1.Deployment](t, u)
			g.Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("quay.io/example/hypershift:1"))
		case "ClusterRole":
			for _, rule := range into[rbacv1.ClusterRole](t, u).Rules {
				if slices.Contains(rule.Resources, "secrets") {
					g.Expect(rule.Verbs).To(Equal([]string{"get"}), "nobody lists the secrets of a management cluster")
				}
			}
		}
	}
	g.Expect(kinds).To(Equal(map[string]int{"CustomResourceDefinition": 3, "Namespace": 1, "ServiceAccount": 1, "Secret": 1,
		"ClusterRole": 1, "ClusterRoleBinding": 1, "Role": 1, "RoleBinding": 1, "Deployment": 1}))
}

func TestMetadata(t *testing.T) {
	g := NewWithT(t)
	metadata := objects(t, rendered(t)["metadata.yaml"])[0]
	series, _, err := unstructured.NestedSlice(metadata.Object, "releaseSeries")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(series).To(Equal([]any{map[string]any{"major": int64(1), "minor": int64(4), "contract": "v1beta2"}}))
}

func TestClusterTemplate(t *testing.T) {
	g := NewWithT(t)
	text := string(rendered(t)["cluster-template.yaml"])
	for _, variable := range []string{"CLUSTER_NAME", "MAAS_DNS_DOMAIN", "KUBERNETES_VERSION", "CONTROL_PLANE_MACHINE_COUNT", "CONTROL_PLANE_MACHINE_MINCPU",
		"CONTROL_PLANE_MACHINE_MINMEMORY", "CONTROL_PLANE_MACHINE_IMAGE", "WORKER_MACHINE_COUNT", "WORKER_MACHINE_MINCPU", "WORKER_MACHINE_MINMEMORY", "WORKER_MACHINE_IMAGE"} {
		g.Expect(text).To(ContainSubstring("${" + variable + "}"))
	}
	names := map[string]bool{}
	for _, u := range objects(t, []byte(strings.NewReplacer("${", "", ":=}", "", ":=default}", "", "}", "").Replace(strings.ReplaceAll(text, "{{ v1.local_hostname }}", "x")))) {
		names[u.GetKind()+"/"+u.GetName()] = true
	}
	g.Expect(names).To(HaveKey("MaasMachineTemplate/CLUSTER_NAME-md-0"))
	g.Expect(names).To(HaveLen(7))
}

func TestBadInput(t *testing.T) {
	g := NewWithT(t)
	_, err := manifests.Release{Image: "x", Version: "latest"}.Render()
	g.Expect(err).To(MatchError(ContainSubstring(`version "latest" is not like v1.2.3`)))
	_, err = manifests.Release{Version: "1.0.0"}.Render()
	g.Expect(err).To(MatchError(ContainSubstring("image of the provider is not named")))
}

// TestComponentsStateNothing checks that the manifests contain the desired state only. A status would come from another
// cluster's API server.
func TestComponentsStateNothing(t *testing.T) {
	g := NewWithT(t)
	names := map[string]bool{}
	for _, u := range objects(t, rendered(t)["infrastructure-components.yaml"]) {
		g.Expect(u.Object).NotTo(HaveKey("status"), u.GetName())
		id := u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
		g.Expect(names).NotTo(HaveKey(id), "one object twice")
		names[id] = true
	}
}

// TestVersions checks that a version is parsed with or without its v, and that a release candidate belongs to the
// series of its release.
func TestVersions(t *testing.T) {
	for version, want := range map[string]map[string]any{
		"1.4.2":         {"major": int64(1), "minor": int64(4), "contract": "v1beta2"},
		"v2.0.0-rc.1":   {"major": int64(2), "minor": int64(0), "contract": "v1beta2"},
		"v0.10.3+build": {"major": int64(0), "minor": int64(10), "contract": "v1beta2"},
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			files, err := manifests.Release{Image: "i", Version: version}.Render()
			g.Expect(err).NotTo(HaveOccurred())
			series, _, err := unstructured.NestedSlice(objects(t, files["metadata.yaml"])[0].Object, "releaseSeries")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(series).To(Equal([]any{want}))
		})
	}
	for _, version := range []string{"", "v", "one.two.three", "v1.2.3.4", "v-1.0.0", "99999999999999999999.0.0"} {
		if _, err := (manifests.Release{Image: "i", Version: version}).Render(); err == nil {
			t.Errorf("%q passes for a version", version)
		}
	}
}
