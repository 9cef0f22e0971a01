// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
)

// reconcileAddons reports spec.addons of a cluster with an OpenShift release, whose operators do not read it.
func (r *Reconciler) reconcileAddons(_ context.Context, s *scope) (ctrl.Result, error) {
	if s.HC.Spec.Addons == nil || s.Release == nil || !s.Distribution().OwnOperators {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, errors.New("spec.addons has no effect, since an OpenShift release brings its own DNS and kube-proxy; remove it")
}
