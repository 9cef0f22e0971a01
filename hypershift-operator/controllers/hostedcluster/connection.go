// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// reconcileConnection maintains the connection between the nodes and their control plane through the platform's own
// network.
func (r *Reconciler) reconcileConnection(ctx context.Context, s *scope) (ctrl.Result, error) {
	connector, ok := s.Platform.(platform.Connector)
	if !ok {
		return ctrl.Result{}, nil
	}
	connection, err := connector.Connect(ctx, r.Client, s.ForPlatform(r.Settings.OperatorImage))
	for _, c := range connection.Conditions {
		s.SetCondition(c)
	}
	for _, conditionType := range connection.Gone {
		s.Clear(conditionType)
	}
	return ctrl.Result{RequeueAfter: connection.CheckAgain}, err
}

// deleteConnection removes the connection between nodes and control plane while the controllers that created it still
// run.
func (r *Reconciler) deleteConnection(ctx context.Context, s *scope) (string, error) {
	connector, ok := s.Platform.(platform.Connector)
	if !ok {
		return "", nil
	}
	waitsFor, err := connector.Disconnect(ctx, r.Client, s.ForPlatform(r.Settings.OperatorImage))
	if meta.IsNoMatchError(err) {
		return "", nil // The platform's kinds are gone, and so are their objects.
	}
	return waitsFor, err
}
