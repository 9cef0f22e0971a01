// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"fmt"

	"github.com/blang/semver/v4"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Guard is the name of the admission policy that refuses the installation of an older minor version, and of its binding.
const Guard = "hypershift-installed-version"

// Objects returns an admission policy and its binding. They refuse to replace HyperShift's CRDs, and the operator in
// namespace, with an older minor version. Versions before 0.2.0 write no version and do not compare it themselves. They
// validate the CRDs before they write the first object, so that the policy refuses them before they change anything.
func Objects(namespace string) []client.Object {
	return []client.Object{guard(namespace), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Guard},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: Guard, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}}
}

func guard(namespace string) *admissionv1.ValidatingAdmissionPolicy {
	this := semver.MustParse(Version)
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: Guard},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
				updates("apiextensions.k8s.io", "customresourcedefinitions", admissionv1.ClusterScope),
				updates("apps", "deployments", admissionv1.NamespacedScope, "operator"),
			}},
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "of-this-installation", Expression: fmt.Sprintf(
					"!has(oldObject.metadata.namespace) || oldObject.metadata.namespace == '%s'", namespace)},
				{Name: "has-a-version", Expression: fmt.Sprintf(
					"oldObject.metadata.?annotations[?'%s'].hasValue()", Annotation)},
			},
			Variables: []admissionv1.Variable{{Name: "version", Expression: fmt.Sprintf(
				"object.metadata.?annotations[?'%s'].orValue('%s').split('.')", Annotation, First)}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("variables.version.size() > 2 && variables.version[0].matches('^[0-9]+$') && "+
					"variables.version[1].matches('^[0-9]+$') && (int(variables.version[0]) > %d || "+
					"int(variables.version[0]) == %d && int(variables.version[1]) >= %d)", this.Major, this.Major, this.Minor),
				Message: fmt.Sprintf("version %d.%d of HyperShift is installed: going back to an older minor version is not "+
					"possible; install version %d.%d, or restore the backups of the hosted clusters in a management cluster "+
					"with the older version; see docs/how-to/upgrade-hypershift.md", this.Major, this.Minor, this.Major,
					this.Minor),
			}},
		},
	}
}

// updates selects updates of a resource, of all names unless there are some.
func updates(group, resource string, scope admissionv1.ScopeType, names ...string) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{
		ResourceNames: names,
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule: admissionv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}, Scope: ptr.To(scope),
			},
		},
	}
}
