// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/staticip"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// ReasonRestoring tells that a MaasMachine waits until it is known which machines run for the cluster that was lost.
const ReasonRestoring = "WaitingForRestoredMachines"

// ClusterUID is what allocations say their MaasCluster is: the UID of the first one, where others took its place.
func ClusterUID(infra *infrav1.MaasCluster) string {
	return cmp.Or(infra.Annotations[infrav1.RestoredFromAnnotation], string(infra.UID))
}

// AwaitsRestore tells that a MaasCluster takes the place of one that was lost, and that nobody has looked yet which machines that one had:
// to allocate others would double them, and to sweep would release them. One that is being deleted has nothing to wait for.
func AwaitsRestore(infra *infrav1.MaasCluster) bool {
	return infra != nil && infra.Annotations[infrav1.RestoredFromAnnotation] != "" && infra.Annotations[infrav1.RestoredAtAnnotation] == "" &&
		infra.DeletionTimestamp.IsZero()
}

func (r *Reconciler) awaitRestore(s *scope) (ctrl.Result, error) {
	s.findings.problem = &Problem{ReasonRestoring, fmt.Sprintf(
		"waiting until MaasCluster %s knows which machines still run for the one whose place it takes", s.infra.Name)}
	return ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}, phase.ErrStop
}

// pool is what machines of a kind are known by in MAAS: the MachineDeployment, or the MachineSet where a pool has no other.
func pool(m *infrav1.MaasMachine) string {
	return cmp.Or(m.Labels[clusterv1.MachineDeploymentNameLabel], m.Labels[clusterv1.MachineSetNameLabel])
}

// fits tells whether a machine that is kept can still be had. One that runs is taken as it is: what is wanted of new ones came after it.
func (r *Reconciler) fits(ctx context.Context, s *scope, m *maas.Machine, restored bool) (bool, ctrl.Result, error) {
	if restored {
		return m.Status == maas.StatusDeployed, ctrl.Result{}, r.knowAddress(ctx, s, m)
	}
	if result, err := r.ensureAddress(ctx, s); err != nil {
		return false, result, err
	}
	request, err := r.request(ctx, s)
	if err != nil {
		result, err := r.problem(ctx, s, err)
		return false, result, err
	}
	return m.Status == maas.StatusAllocated && len(request.Mismatches(*m)) == 0, ctrl.Result{}, nil
}

// knowAddress writes down the static address that a machine runs with, so that it is taken off when the machine is given back. What was
// there before it nobody knows any more: what MAAS gives every machine that it commissions.
func (r *Reconciler) knowAddress(ctx context.Context, s *scope, m *maas.Machine) error {
	if s.machine.Spec.StaticIP == nil || addressOf(s.machine).IP != "" {
		return nil
	}
	ip := staticip.Own(m, s.machine.Spec.StaticIP)
	if ip == "" {
		return nil
	}
	return r.keepAddress(ctx, s, address{IP: ip, SystemID: m.SystemID, Replaced: "auto"})
}
