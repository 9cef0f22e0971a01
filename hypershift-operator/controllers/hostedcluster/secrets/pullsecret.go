// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/upsert"
)

// PullSecret copies the pull secret, and sets Inputs.PullSecret.
type PullSecret struct{ Copier }

// Reconcile copies the pull secret, which all later steps need.
func (r PullSecret) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	source, err := r.Secret(ctx, s, s.HC.Spec.PullSecret.Name, corev1.DockerConfigJsonKey)
	if err != nil {
		s.Reject(hyperv1.ValidReleaseImage, hyperv1.SecretNotFoundReason,
			fmt.Sprintf("The release image cannot be read without the pull secret: %v", err))
		return ctrl.Result{}, fmt.Errorf("spec.pullSecret: %w", err)
	}
	r.Inputs.PullSecret = source.Data[corev1.DockerConfigJsonKey]
	target := s.Secret(naming.PullSecret)
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		if err := s.Claim(target); err != nil {
			return err
		}
		if target.Type == "" {
			target.Type = corev1.SecretTypeDockerConfigJson
		}
		target.Data = map[string][]byte{corev1.DockerConfigJsonKey: r.Inputs.PullSecret}
		return nil
	})
	return ctrl.Result{}, err
}
