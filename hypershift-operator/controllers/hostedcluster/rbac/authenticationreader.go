// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/upsert"
)

// authenticationReaderRole is a Role in kube-system that every kube-apiserver creates. It grants access to the
// ConfigMap extension-apiserver-authentication, which contains CAs and header names but no secrets.
const authenticationReaderRole = "extension-apiserver-authentication-reader"

// AuthenticationReader lets the PKI operator of an OpenShift payload read how its metrics endpoint
// authenticates clients. Without this right the operator does not start. OpenShift grants it to all service accounts;
// here, one service account of each such control plane gets it.
type AuthenticationReader struct {
	Client client.Client
}

// Reconcile writes or deletes the RoleBinding.
func (r AuthenticationReader) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	if !s.Distribution().OwnOperators {
		return ctrl.Result{}, nil
	}
	if _, disabled := s.HC.Annotations[hyperv1.DisablePKIReconciliationAnnotation]; disabled {
		return ctrl.Result{}, r.Drop(ctx, s)
	}
	binding := authenticationReader(s)
	_, err := upsert.Object(ctx, r.Client, binding, func() error {
		if err := s.ClaimClusterWide(binding); err != nil {
			return err
		}
		s.Own(binding)
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: authenticationReaderRole}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: PKIOperator}}
		return nil
	})
	return ctrl.Result{}, err
}

// Drop revokes the right. It keeps a RoleBinding of that name that does not belong to this cluster.
func (r AuthenticationReader) Drop(ctx context.Context, s *cluster.Scope) error {
	binding := authenticationReader(s)
	key := client.ObjectKeyFromObject(binding)
	if err := r.Client.Get(ctx, key, binding); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("reading RoleBinding %s: %w", key, err)
	}
	if !s.OwnsClusterWide(binding) {
		return nil
	}
	_, err := upsert.Gone(ctx, r.Client, binding)
	return err
}

func authenticationReader(s *cluster.Scope) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceSystem, Name: s.Namespace + "-authentication-reader",
	}}
}
