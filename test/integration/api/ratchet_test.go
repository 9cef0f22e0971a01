// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// elsewhere holds an edit of a field of each kind to which no rule refers.
var elsewhere = map[string]map[string]any{
	"HostedCluster":                {"spec.labels": map[string]any{"tier": "one"}},
	"HostedControlPlane":           {"spec.labels": map[string]any{"tier": "one"}},
	"NodePool":                     {"spec.nodeLabels": map[string]any{"tier": "one"}},
	"MaasCluster":                  {"spec.failureDomains": []any{"rack-9"}},
	"MaasMachine":                  {"spec.systemID": "abc123"},
	"MaasMachineTemplate":          {"spec.resourcePool": "gold"},
	"HCPEtcdBackup":                {"metadata.annotations": map[string]any{"a": "b"}},
	"CertificateRevocationRequest": {"metadata.annotations": map[string]any{"a": "b"}},
}

// TestRatcheting checks that objects that violate a rule can still be changed elsewhere. It stores what each rule
// rejects under CRDs without the rules, as an older version may have done. It then changes other fields under the
// current CRDs.
func TestRatcheting(t *testing.T) {
	g := NewWithT(t)
	g.Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
	c, err := client.New(testenv.Start(t, ours...), client.Options{Scheme: scheme.Scheme})
	g.Expect(err).NotTo(HaveOccurred())

	setRules(t, c, false)
	stored := storeRefused(t, c)
	setRules(t, c, true)

	g.Expect(len(stored)).To(BeNumerically(">", 150), "most rules can be broken at creation")
	for _, s := range stored {
		t.Run("When the stored object violates a rule, its other fields should still be mutable: "+s.what, func(t *testing.T) {
			if _, has := s.object.Object["spec"]; has {
				edited := s.base.edited(t, s.object, elsewhere[s.object.GetKind()])
				if err := c.Update(t.Context(), edited, client.DryRunAll); err != nil {
					t.Error(err)
				}
			}
			labelled := s.object.DeepCopy()
			labelled.SetLabels(map[string]string{"tier": "one"})
			if err := c.Update(t.Context(), labelled, client.DryRunAll); err != nil {
				t.Errorf("only metadata: %v", err)
			}
		})
	}
}

// violation is a stored object that violates a rule.
type violation struct {
	what   string
	base   base
	object *unstructured.Unstructured
}

func storeRefused(t *testing.T, c client.Client) []violation {
	t.Helper()
	var stored []violation
	for name, s := range readSuites(t) {
		for _, object := range s.Objects {
			for i, test := range s.Cases {
				if test.Update || test.Status {
					continue
				}
				refused := object.edited(t, object.read(t), test.Given, test.Refuse)
				if !touchesName(test) {
					refused.SetName(fmt.Sprintf("%s-%s-%d", object.File, strings.ToLower(name), i))
				}
				err := c.Create(t.Context(), refused)
				if apierrors.IsInvalid(err) {
					continue // The schema itself rejects it, independently of the rules.
				}
				if err != nil {
					t.Fatal(err)
				}
				stored = append(stored, violation{what: object.File + "/" + test.Rule, base: object, object: refused})
			}
		}
	}
	return stored
}

// setRules adds or removes the rules of our CRDs, and waits until each change takes effect.
func setRules(t *testing.T, c client.Client, with bool) {
	t.Helper()
	for _, folder := range ours {
		loaded, err := crds.Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range loaded {
			if !with {
				for i := range crd.Spec.Versions {
					stripRules(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
				}
			}
			setVersions(t, c, crd)
		}
	}
	waitForRules(t, c, with)
}

// setVersions makes the server use the versions of a CRD, whose status it updates asynchronously.
func setVersions(t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	NewWithT(t).Eventually(func() error {
		now := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), now); err != nil {
			return err
		}
		now.Spec.Versions = crd.Spec.Versions
		return c.Update(t.Context(), now)
	}).WithTimeout(patience).Should(Succeed(), crd.Name)
}

// waitForRules sends an invalid object of each kind until the server's response shows whether it applies the rules.
func waitForRules(t *testing.T, c client.Client, with bool) {
	t.Helper()
	for _, s := range readSuites(t) {
		for _, object := range s.Objects {
			probe := firstBreach(t, s, object)
			if probe == nil {
				continue
			}
			NewWithT(t).Eventually(func() bool {
				return apierrors.IsInvalid(c.Create(t.Context(), probe.DeepCopy(), client.DryRunAll))
			}).WithTimeout(patience).Should(Equal(with), "the rules of %s", probe.GetKind())
		}
	}
}

// firstBreach returns an object that a rule, and not the schema, rejects.
func firstBreach(t *testing.T, s suite, object base) *unstructured.Unstructured {
	t.Helper()
	for _, test := range s.Cases {
		if test.Update || test.Status || strings.Contains(test.Rule, "should ") || strings.Contains(test.Rule, "Unsupported") {
			continue
		}
		breach := object.edited(t, object.read(t), test.Given, test.Refuse)
		breach.SetName("probe")
		return breach
	}
	return nil
}

func stripRules(schema *apiextensionsv1.JSONSchemaProps) {
	schema.XValidations = nil
	for name, property := range schema.Properties {
		stripRules(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		stripRules(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		stripRules(schema.AdditionalProperties.Schema)
	}
}
