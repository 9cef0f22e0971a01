// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

const pkiOperatorName = "control-plane-pki-operator"

// reconcilePKIRoles lets one operator sign break-glass certificates of its own cluster and no other. For OpenShift
// payloads this is their PKI operator, otherwise the control-plane-operator.
func (r *Reconciler) reconcilePKIRoles(ctx context.Context, s *scope) (ctrl.Result, error) {
	_, disabled := s.HC.Annotations[hyperv1.DisablePKIReconciliationAnnotation]
	account := controlPlaneOperatorName
	if s.Distribution().OwnOperators {
		account = pkiOperatorName
		if disabled {
			return ctrl.Result{}, nil
		}
	}
	prefix := "hypershift.openshift.io/" + s.Namespace
	signers := []string{prefix + ".customer-break-glass", prefix + ".sre-break-glass"}
	return ctrl.Result{}, errors.Join(
		r.signerRole(ctx, s, account, s.Namespace+"-csr-approver", "approve", signers,
			rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"get", "list", "watch"}},
			rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/approval"}, Verbs: []string{"update"}}),
		r.signerRole(ctx, s, account, s.Namespace+"-csr-signer", "sign", signers,
			rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"get", "list", "watch"}},
			rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/status"}, Verbs: []string{"patch"}}),
	)
}

func (r *Reconciler) signerRole(ctx context.Context, s *scope, account, name, verb string, signers []string, rules ...rbacv1.PolicyRule) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := upsert.Object(ctx, r.Client, role, func() error {
		if err := s.ClaimClusterWide(role); err != nil {
			return err
		}
		role.Rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, ResourceNames: signers, Verbs: []string{verb},
		})
		return nil
	})
	if err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err = upsert.Object(ctx, r.Client, binding, func() error {
		if err := s.ClaimClusterWide(binding); err != nil {
			return err
		}
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: account}}
		return nil
	})
	return err
}
