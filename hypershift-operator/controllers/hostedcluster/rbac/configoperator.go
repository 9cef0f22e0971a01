// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	configOperatorEvents = ConfigOperator + "-events"
	// olderConfigOperatorAccount is the service account of config operators that the first generation of the
	// control-plane-operator deploys, in some releases up to 4.19.
	olderConfigOperatorAccount = "hosted-cluster-config"
)

// ConfigOperatorEvents lets the config operator of an OpenShift payload write Events about leader election and
// failures in the hosted namespace. The Role that the payload's control-plane-operator grants it omits Events, in every
// version since 4.14.
type ConfigOperatorEvents struct {
	Client client.Client
}

// Reconcile writes the Role and its binding.
func (r ConfigOperatorEvents) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	if !s.Distribution().OwnOperators {
		return ctrl.Result{}, nil
	}
	meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: configOperatorEvents}
	role := &rbacv1.Role{ObjectMeta: meta}
	_, err := upsert.Object(ctx, r.Client, role, func() error {
		s.Own(role)
		role.Rules = []rbacv1.PolicyRule{{
			APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"},
		}}
		return nil
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta}
	_, err = upsert.Object(ctx, r.Client, binding, func() error {
		s.Own(binding)
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: configOperatorEvents}
		binding.Subjects = nil
		for _, account := range []string{ConfigOperator, olderConfigOperatorAccount} {
			binding.Subjects = append(binding.Subjects,
				rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: account})
		}
		return nil
	})
	return ctrl.Result{}, err
}
