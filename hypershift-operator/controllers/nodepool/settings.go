// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// carrySettings gives the machines that exist what the pool now says of all that needs no new machines, those that are on
// their way out included: how their disks are erased matters in the end. A release that is refused holds none of this up.
func (r *Reconciler) carrySettings(ctx context.Context, s *scope) (ctrl.Result, error) {
	return ctrl.Result{}, r.adjustMachines(ctx, s)
}

// carryLastSettings lets a change reach machines that was made just before the deletion: how disks are erased is often set then.
func (r *Reconciler) carryLastSettings(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !s.platformServed {
		return phase.Done()
	}
	if err := r.observeInfra(ctx, s); err != nil {
		if meta.IsNoMatchError(err) {
			return phase.Done() // The platform's kinds are gone, and its machines with them.
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.adjustMachines(ctx, s)
}

func (r *Reconciler) adjustMachines(ctx context.Context, s *scope) error {
	var failures []error
	for _, machine := range s.machines {
		infra := s.infra[machine.Spec.InfrastructureRef.Name]
		if infra == nil {
			continue
		}
		err := upsert.Patch(ctx, r.Client, infra, func() { s.platform.AdjustMachine(s.view(), infra) })
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return errors.Join(failures...)
}
