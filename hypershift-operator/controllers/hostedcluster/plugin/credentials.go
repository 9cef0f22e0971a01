// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
)

// Credentials copies the platform's credentials into the hosted namespace. Invalid credentials set a condition
// and do not stop the reconcile: only machines need them, not the control plane.
type Credentials struct {
	Client        client.Client
	OperatorImage string
}

// Reconcile copies the credentials, and sets their condition and hash.
func (r Credentials) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	credentials, err := s.Platform.ReconcileCredentials(ctx, r.Client, s.ForPlatform(r.OperatorImage))
	if err != nil {
		return ctrl.Result{}, err
	}
	s.SetCondition(credentials.Condition)
	s.CredentialsHash = credentials.Hash
	return ctrl.Result{RequeueAfter: credentials.CheckAgain}, nil
}
