// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/webhookkubeconfig"
)

// Configuration copies what spec.configuration names.
type Configuration struct{ Copier }

// Reconcile copies every Secret and ConfigMap that spec.configuration names.
func (r Configuration) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	var failures []error
	done := map[string]bool{}
	for _, ref := range hosted.References(&hyperv1.HostedClusterSpec{Configuration: s.HC.Spec.Configuration}) {
		kind := fmt.Sprintf("%v %s", ref.ConfigMap, ref.Copy())
		if done[kind] {
			continue
		}
		done[kind] = true
		failures = append(failures, r.copyReference(ctx, s, ref))
	}
	if err := errors.Join(failures...); err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.configuration: %w", err)
	}
	return ctrl.Result{}, nil
}

func (r Configuration) copyReference(ctx context.Context, s *cluster.Scope, ref hosted.Reference) error {
	if ref.ConfigMap {
		return r.copyWholeConfigMap(ctx, s, ref.Use, *ref.Name)
	}
	if ref.Use == hosted.UseTokenWebhook {
		if err := r.checkWebhook(ctx, s, *ref.Name, configv1.KubeConfigKey,
			webhookkubeconfig.Webhook{Decides: true}); err != nil {
			return fmt.Errorf("authentication.webhookTokenAuthenticator.kubeConfig: %w", err)
		}
	}
	return r.copyWholeSecret(ctx, s, ref.Use, *ref.Name)
}
