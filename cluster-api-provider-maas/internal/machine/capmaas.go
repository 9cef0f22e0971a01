// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// evacuationFinalizer is set by CAPMAAS on the machines of a cluster with LXD hosts, and taken off by a controller of its own that
// moves their virtual machines away. Where this provider has taken its place nobody does so: MAAS itself refuses to take a machine
// back as long as it is a VM host.
const evacuationFinalizer = "maas.lxd.io/host-evacuation"

// kubeadmBootstrap is the kind of bootstrap whose kubelet does not start on a machine with swap.
const kubeadmBootstrap = "KubeadmConfig"

// swapOff asks MAAS to install without swap, which it gives to Ubuntu otherwise, where kubeadm is to start the kubelet. Only
// administrators may; for the others that is told, since the image or the bootstrap data may switch it off as well.
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
		r.warn(s, "SwapKept", fmt.Sprintf("%v: an Ubuntu of MAAS's own gets swap, with which a kubelet of kubeadm does not start. Use the API key "+
			"of a MAAS administrator, an image without swap, or failSwapOn: false", err))
		return phase.Done()
	case err != nil:
		return r.problem(ctx, s, err)
	}
	r.take(s, changed)
	return phase.Done()
}
