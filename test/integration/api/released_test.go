// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hack/releases/table"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

const repository = "../../.."

// elsewhereNamespace is the namespace in which the manifests are created again.
const elsewhereNamespace = "elsewhere"

// marker is the name that this test's copy of a CRD refuses, so that the test sees which copy the server uses.
const marker = "marker-of-this-schema"

// TestReleased checks that objects of the last release work with the current CRDs. It stores them under the CRDs of
// the release. Then it reads, rewrites and creates each again under the current CRDs. The objects are the examples of
// the documentation and all objects that the release's own tests store. It also sends what the command lines of both
// versions create.
func TestReleased(t *testing.T) {
	g := NewWithT(t)
	g.Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
	releases, err := table.Read(filepath.Join(repository, table.Path))
	g.Expect(err).NotTo(HaveOccurred())
	folder := filepath.Join(repository, "hack", "releases", releases.Last().Version)
	config := testenv.Start(t)
	testenv.Install(t, config, releasedCRDs(t, folder)...)
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"clusters", elsewhereNamespace} {
		g.Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}

	stored := releasedObjects(t, folder)
	g.Expect(len(stored)).To(BeNumerically(">", 150))
	for i := range stored {
		g.Expect(stored[i].create(t, c)).To(Succeed(), stored[i].what)
	}
	acceptsCommands(t, c, "this version under the CRDs of the release", filepath.Join(repository, "cmd", "root", "testdata"))
	applyToday(t, c, stored)
	acceptsCommands(t, c, "the release under the CRDs of today", filepath.Join(folder, "cli"))
	for _, s := range stored {
		t.Run(s.what, func(t *testing.T) { s.check(t, c) })
	}
}

// acceptsCommands checks in a dry run that the API server accepts what the command line of a version creates.
func acceptsCommands(t *testing.T, c client.Client, what, folder string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "create-*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has no objects of commands: %v", folder, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path)+" of "+what, func(t *testing.T) {
			for _, object := range readManifest(t, path) {
				if object.GetKind() == "Namespace" {
					continue
				}
				strict := client.FieldValidation(metav1.FieldValidationStrict)
				NewWithT(t).Expect(c.Create(t.Context(), object, client.DryRunAll, strict)).To(Succeed(), object.GetKind())
			}
		})
	}
}

// released is an object that a release accepts.
type released struct {
	what   string
	object *unstructured.Unstructured
	// manifest is the object as the user wrote it.
	manifest *unstructured.Unstructured
}

func (r *released) create(t *testing.T, c client.Client) error {
	t.Helper()
	r.manifest = r.object.DeepCopy()
	if err := c.Create(t.Context(), r.object); err != nil {
		return err
	}
	status, has := r.manifest.Object["status"]
	if !has {
		return nil
	}
	r.object.Object["status"] = status
	return c.Status().Update(t.Context(), r.object)
}

func (r *released) check(t *testing.T, c client.Client) {
	g := NewWithT(t)
	now := r.object.DeepCopy()
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(r.object), now)).To(Succeed())
	g.Expect(now.GetGeneration()).To(Equal(r.object.GetGeneration()))
	for _, part := range []string{"spec", "status"} {
		diff := cmp.Diff(r.object.Object[part], now.Object[part])
		g.Expect(diff).To(BeEmpty(), "%s as it was stored (-) and is read (+)", part)
	}

	rewritten := now.DeepCopy()
	g.Expect(c.Update(t.Context(), rewritten)).To(Succeed())
	g.Expect(rewritten.GetResourceVersion()).To(Equal(now.GetResourceVersion()), "an unchanged object is not written")
	if _, has := rewritten.Object["status"]; has {
		g.Expect(c.Status().Update(t.Context(), rewritten)).To(Succeed())
	}

	again := r.manifest.DeepCopy()
	again.SetNamespace(elsewhereNamespace)
	strict := client.FieldValidation(metav1.FieldValidationStrict)
	g.Expect(c.Create(t.Context(), again, client.DryRunAll, strict)).To(Succeed(),
		"the user's manifest under the CRDs of today")
}

// releasedCRDs reads the CRDs of a release from the folders that ours lists.
func releasedCRDs(t *testing.T, folder string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var kinds []*apiextensionsv1.CustomResourceDefinition
	for _, own := range ours {
		paths, err := filepath.Glob(filepath.Join(folder, "crds", own, "*.yaml"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s has no CRDs of %s: %v", folder, own, err)
		}
		for _, path := range paths {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			readYAML(t, path, crd)
			kinds = append(kinds, crd)
		}
	}
	return kinds
}

// releasedObjects reads the examples of a release, and makes the objects that its rules accept.
func releasedObjects(t *testing.T, folder string) []released {
	t.Helper()
	var objects []released
	examples, err := filepath.Glob(filepath.Join(folder, "examples", "*.yaml"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("%s has no examples: %v", folder, err)
	}
	for _, path := range examples {
		for _, object := range readManifest(t, path) {
			what := filepath.Base(path) + " " + object.GetKind() + " " + object.GetName()
			if object.GetKind() != "Secret" {
				objects = append(objects, released{what: what, object: object})
			}
		}
	}
	for name, s := range readSuitesOf(t, folder) {
		for _, object := range s.Objects {
			objects = append(objects, acceptedObjects(t, folder, name, object, s.Cases)...)
		}
	}
	return objects
}

// acceptedObjects returns a base object, and variants of it that the release accepts: one for each case that does not
// change the name.
func acceptedObjects(t *testing.T, folder, suite string, b base, cases []ruleCase) []released {
	t.Helper()
	object := b.readOf(t, folder)
	object.SetName(fmt.Sprintf("%s-%s", b.File, strings.ToLower(suite)))
	objects := []released{{what: b.File + "/" + suite, object: object}}
	for i, test := range cases {
		if touchesName(test) {
			continue
		}
		edits := []map[string]any{test.Given, test.Accept}
		if test.Update || test.Status {
			edits = edits[:1]
		}
		accepted := b.edited(t, b.readOf(t, folder), edits...)
		accepted.SetName(fmt.Sprintf("%s-%s-%d", b.File, strings.ToLower(suite), i))
		objects = append(objects, released{what: b.File + "/" + suite + "/" + test.Rule, object: accepted})
	}
	return objects
}

// applyToday replaces the CRDs with the current ones, and waits until the server uses them for validation.
func applyToday(t *testing.T, c client.Client, stored []released) {
	t.Helper()
	for _, folder := range ours {
		loaded, err := crds.Load(folder)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, crd := range loaded {
			for i := range crd.Spec.Versions {
				root := crd.Spec.Versions[i].Schema.OpenAPIV3Schema
				root.XValidations = append(root.XValidations, apiextensionsv1.ValidationRule{
					Rule: "self.metadata.name != '" + marker + "'", Message: marker,
				})
			}
			setVersions(t, c, crd)
		}
	}
	seen := map[string]bool{}
	for _, s := range stored {
		if seen[s.object.GetKind()] {
			continue
		}
		seen[s.object.GetKind()] = true
		NewWithT(t).Eventually(func() string {
			probe := s.manifest.DeepCopy()
			probe.SetName(marker)
			if err := c.Create(t.Context(), probe, client.DryRunAll); err != nil {
				return err.Error()
			}
			return "accepted"
		}).WithTimeout(patience).Should(ContainSubstring(marker+"\""), s.object.GetKind())
	}
}
