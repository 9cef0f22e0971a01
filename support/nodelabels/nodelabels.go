// SPDX-License-Identifier: Apache-2.0

// Package nodelabels checks the labels that NodePools give their nodes. Machines have the same labels under longer
// keys, so a key must be shorter than Kubernetes allows. The API server refuses labels that no node can have.
package nodelabels

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Name is the name of the admission policy and of its binding.
const Name = "hypershift-node-labels"

const (
	keyPattern = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?` +
		`[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	valuePattern = `^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	// Kubernetes' limits of the two parts of a key.
	maxPrefix, maxName = 253, 63
	// longer is the number of characters that the key on a Machine adds to the first part of a label's key.
	longer = len(hyperv1.NodeLabelPrefix + ".")

	keyRemedy = "use a key of at most 31 characters, or a domain of at most 221 characters, \"/\" and a name of at most 63 " +
		"characters, such as example.com/rack"
	valueRemedy = "use at most 63 letters, digits, \"-\", \"_\" and \".\", beginning and ending with a letter or digit"
)

var keyExpression, valueExpression = regexp.MustCompile(keyPattern), regexp.MustCompile(valuePattern)

// Valid returns the labels that nodes can have.
func Valid(labels map[string]string) map[string]string {
	valid := maps.Clone(labels)
	maps.DeleteFunc(valid, func(key, value string) bool { return !validKey(key) || !validValue(value) })
	return valid
}

// Faults returns a message for each kind of fault of the labels; none if nodes can have all of them.
func Faults(labels map[string]string) []string {
	var keys, values []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !validKey(key) {
			keys = append(keys, fmt.Sprintf("%.80q", key))
		} else if !validValue(labels[key]) {
			values = append(values, fmt.Sprintf("%.80q", key))
		}
	}
	var faults []string
	if len(keys) > 0 {
		faults = append(faults, "spec.nodeLabels: no node can have labels with the keys "+strings.Join(keys, ", ")+"; "+keyRemedy)
	}
	if len(values) > 0 {
		faults = append(faults, "spec.nodeLabels: no node can have the values of "+strings.Join(values, ", ")+"; "+valueRemedy)
	}
	return faults
}

func validKey(key string) bool {
	prefix, name, ok := strings.Cut(key, "/")
	switch {
	case !keyExpression.MatchString(key):
		return false
	case ok:
		return len(prefix) <= maxPrefix-longer && len(name) <= maxName
	default:
		return len(key) <= maxName-longer
	}
}

func validValue(value string) bool {
	return len(value) <= maxName && valueExpression.MatchString(value)
}

// Objects returns the admission policy and its binding. The policy checks only labels that a request adds or changes,
// so a pool with a wrong label can still be changed and deleted.
func Objects() []client.Object {
	return []client.Object{policy(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}}
}

func policy() *admissionv1.ValidatingAdmissionPolicy {
	key := fmt.Sprintf("k.matches(r'%s') && (k.contains('/') ? k.split('/')[0].size() <= %d && k.split('/')[1].size() <= %d : k.size() <= %d)",
		keyPattern, maxPrefix-longer, maxName, maxName-longer)
	value := fmt.Sprintf("variables.labels[k].size() <= %d && variables.labels[k].matches(r'%s')", maxName, valuePattern)
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{hyperv1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"nodepools"},
					},
				}}},
			},
			MatchConditions: []admissionv1.MatchCondition{{Name: "has-labels",
				Expression: "!has(object.metadata.deletionTimestamp) && has(object.spec.nodeLabels)"}},
			Variables: []admissionv1.Variable{
				{Name: "labels", Expression: "object.spec.nodeLabels"},
				{Name: "before", Expression: "oldObject == null ? {} : oldObject.spec.?nodeLabels.orValue({})"},
				{Name: "changed", Expression: "variables.labels.filter(k, !(k in variables.before) || variables.before[k] != variables.labels[k])"},
				{Name: "keys", Expression: "variables.changed.filter(k, !(" + key + "))"},
				{Name: "values", Expression: "variables.changed.filter(k, !(k in variables.keys) && !(" + value + "))"},
			},
			Validations: []admissionv1.Validation{
				rule("keys", "no node can have labels with the keys ", keyRemedy),
				rule("values", "no node can have the values of ", valueRemedy),
			},
		},
	}
}

// rule refuses a request if the list of wrong keys is not empty.
func rule(list, fault, remedy string) admissionv1.Validation {
	return admissionv1.Validation{
		Expression: fmt.Sprintf("variables.%s.size() == 0", list),
		Message:    "spec.nodeLabels has a label that no node can have; " + remedy,
		MessageExpression: fmt.Sprintf(`'spec.nodeLabels: %s"' + variables.%s.map(k, k.size() > 80 ? k.substring(0, 80) : k).join('", "') + '"; %s'`,
			fault, list, remedy),
	}
}
