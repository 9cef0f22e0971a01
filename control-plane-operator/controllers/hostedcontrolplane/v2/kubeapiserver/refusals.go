// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Refusals returns messages for the user about the parts of a cluster's configuration that the API server does not get.
// A partial configuration could admit users that it should reject, or let a tenant read the API server's files. Such a
// part is therefore left out completely, and the rest is applied.
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
