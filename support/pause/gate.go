// SPDX-License-Identifier: Apache-2.0

package pause

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Gate evaluates the pause of a hosted control plane, for controllers of its objects.
type Gate struct {
	// Management reads the HostedControlPlane.
	Management client.Reader
	// ControlPlane names the HostedControlPlane.
	ControlPlane client.ObjectKey
	// Clock provides the time that decides whether a pause has ended.
	Clock clock.PassiveClock
}

// State returns the current state of the pause. If the HostedControlPlane no longer exists, the state is paused without
// end.
func (g Gate) State(ctx context.Context) (State, error) {
	hcp := &hyperv1.HostedControlPlane{}
	err := g.Management.Get(ctx, g.ControlPlane, hcp)
	if apierrors.IsNotFound(err) {
		return State{Paused: true}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("reading HostedControlPlane %s: %w", g.ControlPlane, err)
	}
	return Until(hcp.Spec.PausedUntil, g.Clock.Now()), nil
}
