// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// reconcileCredentials brings the platform's credentials into the hosted namespace. Bad ones are told in a condition and
// do not stop the pass: the control plane does not need them, only machines do.
func (r *Reconciler) reconcileCredentials(ctx context.Context, s *scope) (ctrl.Result, error) {
	credentials, err := s.platform.ReconcileCredentials(ctx, r.Client, s.cluster(r.Settings.OperatorImage))
	if err != nil {
		return ctrl.Result{}, err
	}
	s.setCondition(credentials.Condition)
	s.credentialsHash = credentials.Hash
	return ctrl.Result{RequeueAfter: credentials.CheckAgain}, nil
}
