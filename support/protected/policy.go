// SPDX-License-Identifier: Apache-2.0

package protected

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Name is the prefix of the names of the policies and of their bindings.
const Name = "hypershift-protected-metadata"

// ProviderSigner is the name, in the annotation rotate-signers, of the signer of the provider's break-glass
// certificates.
const ProviderSigner = "sre-system-admin-signer"

// page is the documentation page with the table.
const page = "docs/reference/protected-metadata.md"

// target is the scope of one policy.
type target struct {
	suffix, group string
	resources     []string
	kind          Kind
	// namespaced excludes hosted namespaces: HyperShift's programs write the objects there, and tenants have no rights in
	// them.
	namespaced bool
}

var targets = []target{
	{"-clusters", hyperv1.GroupVersion.Group, []string{"hostedclusters"}, HostedCluster, false},
	{"-pools", hyperv1.GroupVersion.Group, []string{"nodepools"}, NodePool, false},
	{"-secrets", "", []string{"secrets"}, Secret, true},
	{"-configmaps", "", []string{"configmaps"}, ConfigMap, true},
	{"-namespaces", "", []string{"namespaces", "namespaces/status", "namespaces/finalize"}, Namespace, false},
}

// Objects returns the policies and their bindings. Any user may send a request that changes no protected key. Garbage
// collection, deletion, and tools that keep fields which they do not manage work as before.
func Objects() []client.Object {
	var objects []client.Object
	for _, t := range targets {
		objects = append(objects, t.policy(), &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: Name + t.suffix},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: Name + t.suffix, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		})
	}
	return objects
}

func (t target) policy() *admissionv1.ValidatingAdmissionPolicy {
	match := &admissionv1.MatchResources{
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{
				APIGroups: []string{t.group}, APIVersions: []string{"*"}, Resources: t.resources,
				Scope: ptr.To(admissionv1.AllScopes),
			},
		}}},
	}
	if t.namespaced {
		match.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: hyperv1.ControlPlaneNamespaceLabel, Operator: metav1.LabelSelectorOpDoesNotExist},
		}}
	}
	spec := admissionv1.ValidatingAdmissionPolicySpec{FailurePolicy: ptr.To(admissionv1.Fail), MatchConstraints: match}
	var changes []string
	for _, rule := range t.rules() {
		changes = append(changes, rule.Expression)
		spec.Validations = append(spec.Validations, rule)
	}
	// The API server checks the user's rights last, and only for a request that the rules would refuse.
	spec.MatchConditions = []admissionv1.MatchCondition{
		{Name: "changes-protected-metadata", Expression: "!((" + strings.Join(changes, ") && (") + "))"},
		{Name: "by-a-tenant", Expression: fmt.Sprintf(
			"!authorizer.group('%s').resource('hostedclusters').check('%s').allowed()", hyperv1.GroupVersion.Group, Right)},
	}
	return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: Name + t.suffix}, Spec: spec}
}

func (t target) rules() []admissionv1.Validation {
	var rules []admissionv1.Validation
	for _, m := range []struct {
		form  Form
		field string
	}{{Annotation, "annotations"}, {Label, "labels"}} {
		if names := keys(t.kind, m.form); len(names) > 0 {
			rules = append(rules, unchanged(t.kind, m.form, m.field, names))
		}
	}
	if names := keys(t.kind, Finalizer); len(names) > 0 {
		rules = append(rules, kept(t.kind, names))
	}
	if t.kind == HostedCluster {
		rules = append(rules, signerKept())
	}
	return rules
}

// unchanged returns a rule that forbids changes to the given keys of a map.
func unchanged(kind Kind, form Form, field string, names []string) admissionv1.Validation {
	before, after := maps(field)
	differs := fmt.Sprintf("%s[?k].orValue('') != %s[?k].orValue('') || (k in %s) != (k in %s)", before, after, before,
		after)
	return admissionv1.Validation{
		Expression: fmt.Sprintf("%s.all(k, !(%s))", celList(names), differs),
		Message: fmt.Sprintf("a protected %s of this %s may be changed by the operator and administrators only; see %s",
			form, kind, page),
		MessageExpression: fmt.Sprintf("'%s ' + %s.filter(k, %s).join(', ') + '%s'", form, celList(names), differs,
			onlyAdministrators(kind)),
	}
}

// kept returns a rule that forbids removing finalizers until the operator removes them. Adding one is harmless.
func kept(kind Kind, names []string) admissionv1.Validation {
	const missing = "f in (oldObject == null ? [] : oldObject.metadata.?finalizers.orValue([])) && !(f in object.metadata.?finalizers.orValue([]))"
	return admissionv1.Validation{
		Expression: fmt.Sprintf("%s.all(f, !(%s))", celList(names), missing),
		Message:    fmt.Sprintf("a finalizer of this %s is removed by the operator when all that was made for it is gone; see %s", kind, page),
		MessageExpression: fmt.Sprintf("'finalizer ' + %s.filter(f, %s).join(', ') + ' of this %s is removed by the operator when all that was made for it is gone; "+
			"delete the object, or keep metadata.finalizers when you replace it; see %s'", celList(names), missing, kind, page),
	}
}

// signerKept returns a rule that forbids tenants to rotate the signer of the provider's break-glass certificates.
func signerKept() admissionv1.Validation {
	before, after := maps("annotations")
	entries := func(annotations string) string {
		return fmt.Sprintf("%s[?'%s'].orValue('').split(',').map(e, e.trim()).filter(e, e.startsWith('%s'))", annotations,
			hyperv1.RotateSignersAnnotation, ProviderSigner)
	}
	return admissionv1.Validation{
		Expression: entries(before) + " == " + entries(after),
		Message: fmt.Sprintf("annotation %s: %s belongs to the provider of the management cluster, whose administrators rotate it; name other signers",
			hyperv1.RotateSignersAnnotation, ProviderSigner),
	}
}

func onlyAdministrators(kind Kind) string {
	return fmt.Sprintf(" of this %s may be changed by the operator and administrators only; leave it out, or keep it as it is; see %s", kind, page)
}

// maps returns the CEL expressions of a map in the metadata before and after the request.
func maps(field string) (before, after string) {
	return fmt.Sprintf("(oldObject == null ? {} : oldObject.metadata.?%s.orValue({}))", field),
		fmt.Sprintf("object.metadata.?%s.orValue({})", field)
}

func celList(values []string) string { return "['" + strings.Join(values, "', '") + "']" }
