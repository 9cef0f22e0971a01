// SPDX-License-Identifier: Apache-2.0

// Package namespaceguard prevents the deletion of a control plane's namespace. Deleting the namespace would first
// delete the managers of the machines. They could not run in that namespace again, so the machines would never be
// released.
package namespaceguard

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const (
	// Name is the name of the policy and of its binding.
	Name = "hypershift-control-plane-namespaces"
	// ReleasedAnnotation, with any value, allows the deletion of the namespace that carries it. The operator sets it when
	// the machines are gone. An administrator may set it too.
	ReleasedAnnotation = hyperv1.NamespaceReleasedAnnotation
)

// Objects returns the admission policy and its binding. The rule does not check the user's identity, so it also applies
// to an operator that runs outside of the cluster.
func Objects() []client.Object {
	return []client.Object{policy(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}}
}

func policy() *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hyperv1.ControlPlaneNamespaceLabel: "true"}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule: admissionv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"namespaces"}, Scope: ptr.To(admissionv1.ClusterScope),
					},
				}}},
			},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("has(oldObject.metadata.annotations) && '%s' in oldObject.metadata.annotations", ReleasedAnnotation),
				Message:    "this namespace holds a control plane and its machines: delete its HostedCluster instead, and the namespace goes with it",
				MessageExpression: fmt.Sprintf("'namespace ' + oldObject.metadata.name + ' holds the control plane and the machines of HostedCluster ' + "+
					"oldObject.metadata.?annotations['%s'].orValue('(unknown)') + ': delete that instead, and the namespace goes with it'", hyperv1.HostedClusterAnnotation),
			}},
		},
	}
}
