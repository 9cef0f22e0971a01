// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/token"
)

// reconcileToken writes the two Secrets by which a machine gets its configuration.
func (r *Reconciler) reconcileToken(ctx context.Context, s *reconciliation) (result ctrl.Result, err error) {
	s.userData, result, err = r.secrets(s).Reconcile(ctx)
	return result, err
}

// retireTokens retires the Secrets of outdated configurations. While the pool is held, the Secrets of the last
// configuration stay, since the next machine is created with them.
func (r *Reconciler) retireTokens(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	if s.held() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.secrets(s).Retire(ctx)
}

func (r *Reconciler) secrets(s *reconciliation) token.Secrets {
	return token.Secrets{
		Scope: s.Scope, Client: r.Client, Config: s.config, HCP: s.hcp, PullSecret: s.pullSecret, IgnitionCA: s.ignitionCA,
	}
}
