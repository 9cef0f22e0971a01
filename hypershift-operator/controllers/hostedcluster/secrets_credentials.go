// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// reconcileCredentials copies the platform's credentials into the hosted namespace. Invalid credentials set a condition
// and do not stop the reconcile: only machines need them, not the control plane.
func (r *Reconciler) reconcileCredentials(ctx context.Context, s *scope) (ctrl.Result, error) {
	credentials, err := s.Platform.ReconcileCredentials(ctx, r.Client, s.ForPlatform(r.Settings.OperatorImage))
	if err != nil {
		return ctrl.Result{}, err
	}
	s.SetCondition(credentials.Condition)
	s.CredentialsHash = credentials.Hash
	return ctrl.Result{RequeueAfter: credentials.CheckAgain}, nil
}
