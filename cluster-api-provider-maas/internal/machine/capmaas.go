// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// CAPMAAS sets evacuationFinalizer on the machines of a cluster with LXD hosts. A controller of CAPMAAS removes it
// after moving the virtual machines away. That controller does not run here, so this provider removes the finalizer.
// This is safe: MAAS refuses to release a machine while it is a VM host.
const evacuationFinalizer = "maas.lxd.io/host-evacuation"

// kubeadmBootstrap is the bootstrap kind whose kubelet does not start on a machine with swap.
const kubeadmBootstrap = "KubeadmConfig"

// swapOff requests an installation without swap if kubeadm starts the kubelet. By default MAAS gives swap to Ubuntu.
// Only MAAS administrators may change this. For other users swapOff emits a warning and continues, since the image or
// the bootstrap data may disable swap as well.
func (r *Reconciler) swapOff(ctx context.Context, s *scope) (ctrl.Result, error) {
	m := s.observed
	if m == nil || m.Status != maas.StatusAllocated || s.owner.Spec.Bootstrap.ConfigRef.Kind != kubeadmBootstrap {
		return phase.Done()
	}
	if m.SwapSize != nil && *m.SwapSize == 0 {
		return phase.Done()
	}
	changed, err := s.identity.Client.UpdateMachine(ctx, m.SystemID, map[string]string{"swap_size": "0"})
	switch {
	case maas.IsForbidden(err):
		r.warn(s, "SwapKept", fmt.Sprintf("%v: MAAS enables swap on its own Ubuntu images, and a kubelet of kubeadm does not start with swap. Use the API key "+
			"of a MAAS administrator, an image without swap, or failSwapOn: false", err))
		return phase.Done()
	case err != nil:
		return r.problem(ctx, s, err)
	}
	r.take(s, changed)
	return phase.Done()
}
