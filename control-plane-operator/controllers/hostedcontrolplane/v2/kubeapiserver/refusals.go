// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Refusals says in sentences for the user what of a cluster's configuration its API server is not given. By halves it would let
// in whom the user forbade, or let a tenant read the API server's files. So it is left out whole, and the rest goes on.
func Refusals(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) ([]error, error) {
	_, refusals, err := authenticators(ctx, c, hcp)
	if err != nil {
		return nil, err
	}
	signers, err := refuseSigners(ctx, c, hcp)
	if err != nil {
		return nil, err
	}
	_, webhooks, err := acceptedWebhooks(ctx, c, hcp)
	return append(append(refusals, signers...), webhooks...), err
}
