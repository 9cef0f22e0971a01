// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/upsert"
)

// SSHKey copies the public key that spec.sshKey names.
type SSHKey struct{ Copier }

// Reconcile copies the SSH key for nodes, and removes the copy when the cluster no longer has a key.
func (r SSHKey) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	if s.HC.Spec.SSHKey.Name == "" {
		return ctrl.Result{}, s.Drop(ctx, r.Client, s.Secret(naming.SSHKey))
	}
	const key = "id_rsa.pub"
	source, err := r.Secret(ctx, s, s.HC.Spec.SSHKey.Name, key)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.sshKey: %w", err)
	}
	target := s.Secret(naming.SSHKey)
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		if target.Type == "" {
			target.Type = corev1.SecretTypeOpaque
		}
		target.Data = map[string][]byte{key: source.Data[key]}
		return s.Claim(target)
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.sshKey: %w", err)
	}
	return ctrl.Result{}, nil
}
