// Package pausegate tells the controllers of a guest whether its hosted control plane is paused.
package pausegate

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/pause"
)

// Gate reads the pause of one hosted control plane.
type Gate struct {
	// Management reads the HostedControlPlane.
	Management client.Reader
	// ControlPlane names the HostedControlPlane.
	ControlPlane client.ObjectKey
	// Clock tells whether a pause is over.
	Clock clock.PassiveClock
}

// Closed tells whether nothing may be done now, and for how long yet: zero means until the HostedControlPlane changes. A
// control plane that is gone closes the gate for good.
func (g Gate) Closed(ctx context.Context) (closed bool, wait time.Duration, err error) {
	hcp := &hyperv1.HostedControlPlane{}
	if err := g.Management.Get(ctx, g.ControlPlane, hcp); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return true, 0, nil
		}
		return true, 0, fmt.Errorf("reading HostedControlPlane %s: %w", g.ControlPlane, err)
	}
	state := pause.Until(hcp.Spec.PausedUntil, g.Clock.Now())
	return state.Paused, state.For, nil
}
