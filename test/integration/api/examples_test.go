// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/testenv"
)

// TestExamples checks that the API server accepts the manifests of docs/ unchanged.
func TestExamples(t *testing.T) {
	config := rest.CopyConfig(testenv.Start(t, ours...))
	var warned warnings
	config.WarningHandler = &warned
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}}
	NewWithT(t).Expect(c.Create(t.Context(), namespace)).To(Succeed())

	paths, err := filepath.Glob("../../../docs/examples/*.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(len(paths)).To(BeNumerically(">=", 2))
	for _, path := range paths {
		t.Run("When "+filepath.Base(path)+" is applied, the server should accept it without a warning", func(t *testing.T) {
			g := NewWithT(t)
			warned = nil
			for _, object := range readManifest(t, path) {
				g.Expect(c.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
			}
			g.Expect(warned).To(BeEmpty())
		})
	}
}

func readManifest(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("reading %s: %v", path, err)
		}
		objects = append(objects, object)
	}
}
