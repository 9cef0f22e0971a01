// SPDX-License-Identifier: Apache-2.0

// Package rbac grants the operators of a payload the rights that they cannot grant themselves.
package rbac

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/upsert"
)

// Service accounts of operators of a hosted control plane.
const (
	ControlPlaneOperator = "control-plane-operator"
	PKIOperator          = "control-plane-pki-operator"
	ConfigOperator       = "hosted-cluster-config-operator"
)

// Signers let one operator sign break-glass certificates of its own cluster and no other. For OpenShift
// payloads this is their PKI operator, otherwise the control-plane-operator.
type Signers struct {
	Client client.Client
}

// Reconcile writes the ClusterRoles and their bindings.
func (r Signers) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	_, disabled := s.HC.Annotations[hyperv1.DisablePKIReconciliationAnnotation]
	account := ControlPlaneOperator
	if s.Distribution().OwnOperators {
		account = PKIOperator
		if disabled {
			return ctrl.Result{}, nil
		}
	}
	prefix := "hypershift.openshift.io/" + s.Namespace
	signers := []string{prefix + ".customer-break-glass", prefix + ".sre-break-glass"}
	return ctrl.Result{}, errors.Join(
		r.role(ctx, s, account, s.Namespace+"-csr-approver", "approve", signers,
			rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"get", "list", "watch"}},
			rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/approval"}, Verbs: []string{"update"}}),
		r.role(ctx, s, account, s.Namespace+"-csr-signer", "sign", signers,
			rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"get", "list", "watch"}},
			rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/status"}, Verbs: []string{"patch"}}),
	)
}

func (r Signers) role(ctx context.Context, s *cluster.Scope, account, name, verb string, signers []string, rules ...rbacv1.PolicyRule) error {
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
