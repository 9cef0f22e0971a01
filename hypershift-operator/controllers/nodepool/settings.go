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

// carrySettings applies the pool's in-place settings to the existing machines. Machines that are being deleted are
// included, because how their disks are erased matters at the end. A refused release does not delay this.
func (r *Reconciler) carrySettings(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	return ctrl.Result{}, r.adjustMachines(ctx, s)
}

// carryLastSettings applies a change of the settings just before the deletion. Users often configure the erasure of
// disks at that time.
func (r *Reconciler) carryLastSettings(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	if !s.PlatformServed {
		return phase.Done()
	}
	if err := r.observeInfra(ctx, s); err != nil {
		if meta.IsNoMatchError(err) {
			return phase.Done() // The platform's kinds are gone, and so are its machines.
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.adjustMachines(ctx, s)
}

func (r *Reconciler) adjustMachines(ctx context.Context, s *reconciliation) error {
	var failures []error
	for _, machine := range s.Machines {
		infra := s.Infra[machine.Spec.InfrastructureRef.Name]
		if infra == nil {
			continue
		}
		err := upsert.Patch(ctx, r.Client, infra, func() { s.Platform.AdjustMachine(s.View(), infra) })
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return errors.Join(failures...)
}
