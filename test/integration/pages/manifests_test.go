// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// part finds the kind that a block shows a part of. Such a block has no kind itself.
var part = regexp.MustCompile(`\A# part of a (\w+)\n`)

// file finds blocks that are no manifests, such as the configuration of Prometheus.
var file = regexp.MustCompile(`\A# configuration of \w+`)

// served are the folders of support/crds whose kinds the pages show.
var served = []string{crds.HyperShift, crds.Certificates, crds.Infrastructure}

// TestMain stops the server that the tests share.
func TestMain(m *testing.M) { testenv.Main(m) }

// defaulted is what the operator's webhook sets in a NodePool that omits it.
const defaulted = `{"spec": {"release": {"image": "registry.example.com/release:1.36.3"}, "platform": {"type": "MAAS"},
	"management": {"upgradeType": "Replace"}}}`

// TestManifests creates each manifest of the pages as a dry run, with strict validation.
func TestManifests(t *testing.T) {
	config := rest.CopyConfig(testenv.Shared(t, served...))
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	examples := readExamples(t)
	found := 0
	for _, p := range readPages(t) {
		for _, b := range p.blocksOf("yaml") {
			found++
			t.Run(fmt.Sprintf("%s:%d", p.path, b.line), func(t *testing.T) {
				g := NewWithT(t)
				objects, err := manifests(b.text, examples)
				g.Expect(err).NotTo(HaveOccurred())
				for _, object := range objects {
					g.Expect(dryRun(t, c, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
				}
			})
		}
	}
	NewWithT(t).Expect(found).To(BeNumerically(">", 10), "manifests in all pages")
}

// TestManifestsAreStrict checks that a block with a mistake is found, whether it is an object or a part of one.
func TestManifestsAreStrict(t *testing.T) {
	c, err := client.New(testenv.Shared(t, served...), client.Options{Scheme: scheme.Scheme})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	examples := readExamples(t)
	tests := []struct{ name, text, fault string }{
		{
			"an unknown field of a part", "# part of a NodePool\nspec:\n  platform:\n    maas:\n      minCPU: 16\n",
			`unknown field "spec.platform.maas.minCPU"`,
		},
		{"an invalid value of a part", "# part of a HostedCluster\nspec:\n  dns:\n    baseDomain: a b\n", "baseDomain"},
		{
			"an unknown field of an object",
			"apiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool\nmetadata: {name: x, namespace: default}\n" +
				"spec: {clusterName: x, replicas: 1, platform: {maas: {}}, node: 1}\n",
			`unknown field "spec.node"`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			objects, err := manifests(tt.text, examples)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(dryRun(t, c, objects[0])).To(MatchError(ContainSubstring(tt.fault)))
		})
	}
	_, err = manifests("spec:\n  replicas: 1\n", examples)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("# part of a KIND")))
}

// manifests returns the objects of a block. A part is merged into the example of its kind.
func manifests(text string, examples map[string][]byte) ([]*unstructured.Unstructured, error) {
	if file.MatchString(text) {
		var content any
		return nil, yaml.Unmarshal([]byte(text), &content)
	}
	objects, err := decode([]byte(text))
	if err != nil {
		return nil, err
	}
	match := part.FindStringSubmatch(text)
	for i, object := range objects {
		switch {
		case object.GetKind() == "NodePool":
			objects[i], err = merge([]byte(defaulted), object)
		case object.GetKind() != "":
		case match == nil || examples[match[1]] == nil:
			err = errors.New(`the manifest has no kind; begin the block with "# part of a KIND", of a kind in docs/examples`)
		default:
			objects[i], err = merge(examples[match[1]], object)
		}
		if err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// merge applies an object to the JSON of a base.
func merge(base []byte, over *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	changes, err := json.Marshal(over.Object)
	if err != nil {
		return nil, err
	}
	merged, err := jsonpatch.MergePatch(base, changes)
	if err != nil {
		return nil, err
	}
	result := &unstructured.Unstructured{}
	return result, json.Unmarshal(merged, &result.Object)
}

// dryRun creates an object in a dry run. It returns no error for kinds of other projects, which the server does not
// serve.
func dryRun(t *testing.T, c client.Client, object *unstructured.Unstructured) error {
	t.Helper()
	gvk := object.GroupVersionKind()
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	ours := strings.HasSuffix(gvk.Group, "hypershift.openshift.io") || gvk.Group == "infrastructure.cluster.x-k8s.io"
	switch {
	case meta.IsNoMatchError(err) && !ours:
		return nil
	case err != nil:
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.GetNamespace()}}
		if namespace.Name == "" {
			namespace.Name = metav1.NamespaceDefault
			object.SetNamespace(namespace.Name)
		}
		if err := c.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return c.Create(t.Context(), object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
}

// readExamples returns the objects of docs/examples as JSON, by their kinds.
func readExamples(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "examples", "hostedcluster-kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string][]byte{}
	for _, object := range objects {
		if examples[object.GetKind()], err = json.Marshal(object.Object); err != nil {
			t.Fatal(err)
		}
	}
	return examples
}

// decode reads YAML documents.
func decode(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		content := map[string]any{}
		err := decoder.Decode(&content)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(content) > 0:
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
	}
}
