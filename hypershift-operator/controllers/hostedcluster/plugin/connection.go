// SPDX-License-Identifier: Apache-2.0

// Package plugin runs the phases that the plugin of a cluster's platform implements.
package plugin

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// Connection maintains the connection between the nodes and their control plane through the platform's own
// network.
type Connection struct {
	Client        client.Client
	OperatorImage string
}

// Reconcile makes the connection, and sets its conditions.
func (r Connection) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	connector, ok := s.Platform.(platform.Connector)
	if !ok {
		return ctrl.Result{}, nil
	}
	connection, err := connector.Connect(ctx, r.Client, s.ForPlatform(r.OperatorImage))
	for _, c := range connection.Conditions {
		s.SetCondition(c)
	}
	for _, conditionType := range connection.Gone {
		s.Clear(conditionType)
	}
	return ctrl.Result{RequeueAfter: connection.CheckAgain}, err
}

// Delete removes the connection between nodes and control plane while the controllers that created it still run.
func (r Connection) Delete(ctx context.Context, s *cluster.Scope) (string, error) {
	connector, ok := s.Platform.(platform.Connector)
	if !ok {
		return "", nil
	}
	waitsFor, err := connector.Disconnect(ctx, r.Client, s.ForPlatform(r.OperatorImage))
	if meta.IsNoMatchError(err) {
		return "", nil // The platform's kinds are gone, and so are their objects.
	}
	return waitsFor, err
}
