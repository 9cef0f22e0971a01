// SPDX-License-Identifier: Apache-2.0

// Package dataguard prevents the deletion of objects that a control plane cannot recreate: the volumes of etcd, the
// root CA, and the keys that encrypt Secrets of the guest.
package dataguard

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/hosted"
)

// Name is the name of the policy and of its binding.
const Name = "hypershift-control-plane-data"

// claims matches the names that the StatefulSet of etcd gives the PersistentVolumeClaims of its members.
const claims = `^data-etcd-[0-9]+$`

var claimExpression = regexp.MustCompile(claims)

// secrets are the names of guarded Secrets. The second one holds the keys with which API servers read and write.
var secrets = []string{hosted.RootCA, hosted.EncryptionConfig}

// controllers are the users of kube-controller-manager that delete the objects of an owner or a namespace. It has one
// user if it does not use credentials of service accounts.
var controllers = []string{
	"system:kube-controller-manager",
	"system:serviceaccount:kube-system:generic-garbage-collector",
	"system:serviceaccount:kube-system:namespace-controller",
}

// GuardsClaim reports whether a PersistentVolumeClaim of a hosted namespace holds data of etcd.
func GuardsClaim(claim client.Object) bool { return claimExpression.MatchString(claim.GetName()) }

// GuardsSecret reports whether a Secret of a hosted namespace may be guarded. The policy guards only those copies of
// users' Secrets that hold an encryption key, which metadata does not show.
func GuardsSecret(secret client.Object) bool {
	return slices.Contains(secrets, secret.GetName()) || secret.GetLabels()[hyperv1.UserCopyLabel] == "true"
}

// Release lets an object be deleted. A missing object is not an error.
func Release(ctx context.Context, c client.Client, obj client.Object) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"%s":"true"}}}`, hyperv1.AllowDataLossAnnotation)
	err := c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("setting the annotation %s of %T %s: %w", hyperv1.AllowDataLossAnnotation, obj,
			client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// Objects returns the admission policy and its binding. operatorNamespace is the namespace of the operator. Programs
// of the operator and of the hosted namespace itself may delete guarded objects. All users may delete them once the
// namespace is released or terminating.
func Objects(operatorNamespace string) []client.Object {
	return []client.Object{policy(operatorNamespace), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}}
}

func policy(operatorNamespace string) *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hyperv1.ControlPlaneNamespaceLabel: "true"}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule: admissionv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumeclaims", "secrets"},
						Scope: ptr.To(admissionv1.NamespacedScope),
					},
				}}},
			},
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "cannot-be-made-again", Expression: fmt.Sprintf("request.resource.resource == 'persistentvolumeclaims' ? "+
					"oldObject.metadata.name.matches('%s') : oldObject.metadata.name in ['%s'] || "+
					"oldObject.metadata.?labels[?'%s'].orValue('') == 'true' && oldObject.?data[?'%s'].hasValue()", claims,
					strings.Join(secrets, "', '"), hyperv1.UserCopyLabel, hyperv1.AESCBCKeySecretKey)},
				{Name: "by-another-program", Expression: fmt.Sprintf("!(request.userInfo.username in ['%s']) && "+
					"![request.namespace, '%s'].exists(n, request.userInfo.username.startsWith('system:serviceaccount:' + n + ':'))",
					strings.Join(controllers, "', '"), operatorNamespace)},
			},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("oldObject.metadata.?annotations[?'%s'].hasValue() || "+
					"has(namespaceObject.metadata.deletionTimestamp) || namespaceObject.metadata.?annotations[?'%s'].hasValue()",
					hyperv1.AllowDataLossAnnotation, hyperv1.NamespaceReleasedAnnotation),
				Message: "this object of a control plane cannot be made again; delete the HostedCluster instead",
				MessageExpression: fmt.Sprintf("request.resource.resource + ' ' + oldObject.metadata.name + ' of namespace ' + request.namespace + "+
					"' cannot be made again: without it, data of the hosted cluster is lost; to delete the cluster, delete its HostedCluster; "+
					"to delete this object alone, take a backup and run kubectl annotate -n ' + request.namespace + ' ' + request.resource.resource + "+
					"' ' + oldObject.metadata.name + ' %s=true first'", hyperv1.AllowDataLossAnnotation),
			}},
		},
	}
}
