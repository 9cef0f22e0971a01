// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/openshift/hypershift/support/crds"
)

// theirs lists the parts of our schemas that come from OpenShift, with rules that OpenShift tests.
var theirs = []string{
	"spec.configuration.", "spec.operatorConfiguration.ingressOperator.",
	"status.configuration.", "status.version.", "status.versionStatus.",
}

// TestEveryRuleHasACase checks that each rule of each kind has a case in testdata/rules.
func TestEveryRuleHasACase(t *testing.T) {
	cases := casesByKind(t)
	rules, covered := 0, 0
	for _, folder := range ours {
		loaded, err := crds.Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range loaded {
			for message, path := range rulesOf(crd) {
				rules++
				if hasCase(cases[crd.Spec.Names.Kind], message) {
					covered++
					continue
				}
				t.Errorf("%s: the rule of %s has no case in testdata/rules: %s", crd.Name, path, message)
			}
		}
	}
	t.Logf("%d of %d rules have an accepted and a refused object", covered, rules)
}

func casesByKind(t *testing.T) map[string][]string {
	t.Helper()
	cases := map[string][]string{}
	for _, s := range readSuites(t) {
		for _, object := range s.Objects {
			kind := object.read(t).GetKind()
			for _, test := range s.Cases {
				cases[kind] = append(cases[kind], test.Rule)
			}
		}
	}
	return cases
}

func hasCase(cases []string, message string) bool {
	for _, rule := range cases {
		if rule != "" && strings.Contains(message, rule) {
			return true
		}
	}
	return false
}

// rulesOf returns the location of each rule of a CRD, by its message.
func rulesOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]string {
	rules := map[string]string{}
	for _, version := range crd.Spec.Versions {
		collect("", version.Schema.OpenAPIV3Schema, rules)
	}
	return rules
}

func collect(path string, schema *apiextensionsv1.JSONSchemaProps, rules map[string]string) {
	for _, prefix := range theirs {
		if strings.HasPrefix(path, prefix) {
			return
		}
	}
	for _, rule := range schema.XValidations {
		rules[rule.Message] = path
	}
	for name := range schema.Properties {
		property := schema.Properties[name]
		collect(strings.TrimPrefix(path+"."+name, "."), &property, rules)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		collect(path+"[]", schema.Items.Schema, rules)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		collect(path+"{}", schema.AdditionalProperties.Schema, rules)
	}
}
