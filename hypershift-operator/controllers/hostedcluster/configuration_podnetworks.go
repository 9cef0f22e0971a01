// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/podranges"
)

// validatePodNetworks rejects cluster networks from which the release cannot give nodes ranges. The API server cannot
// check this, because the limits depend on the release. An existing control plane is still reconciled.
func (r *Reconciler) validatePodNetworks(_ context.Context, s *scope) (ctrl.Result, error) {
	if s.wantedControlPlane == nil {
		return ctrl.Result{}, nil
	}
	kubernetes := !distributions.Of(s.wantedControlPlane.Distribution()).OwnOperators
	faults := podranges.Faults(&s.HC.Spec.Networking, kubernetes)
	if len(faults) == 0 {
		return ctrl.Result{}, nil
	}
	s.Reject(hyperv1.ValidHostedClusterConfiguration, hyperv1.InvalidConfigurationReason, errors.Join(faults...).Error())
	if s.HCP == nil {
		return ctrl.Result{}, phase.ErrStop
	}
	return ctrl.Result{}, nil
}
