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

// ReasonRestoring means that a MaasMachine waits until the running machines of the lost cluster are known.
const ReasonRestoring = "WaitingForRestoredMachines"

// ClusterUID returns the cluster UID that allocations record: the UID of the original MaasCluster if this one was
// restored, else its own.
func ClusterUID(infra *infrav1.MaasCluster) string {
	return cmp.Or(infra.Annotations[infrav1.RestoredFromAnnotation], string(infra.UID))
}

// AwaitsRestore reports whether a restored MaasCluster does not know yet which machines the lost one had. Until then,
// an allocation would duplicate them and a sweep would release them. A MaasCluster that is being deleted does not wait.
func AwaitsRestore(infra *infrav1.MaasCluster) bool {
	return infra != nil && infra.Annotations[infrav1.RestoredFromAnnotation] != "" && infra.Annotations[infrav1.RestoredAtAnnotation] == "" &&
		infra.DeletionTimestamp.IsZero()
}

func (r *Reconciler) awaitRestore(s *scope) (ctrl.Result, error) {
	s.findings.problem = &Problem{ReasonRestoring, fmt.Sprintf(
		"waiting until MaasCluster %s has found the running machines of the MaasCluster that it replaces", s.infra.Name)}
	return ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}, phase.ErrStop
}

// pool returns the pool name that MAAS records for machines of a kind: the MachineDeployment, else the MachineSet.
func pool(m *infrav1.MaasMachine) string {
	return cmp.Or(m.Labels[clusterv1.MachineDeploymentNameLabel], m.Labels[clusterv1.MachineSetNameLabel])
}

// fits reports whether a reserved machine is usable. A running machine of a restored cluster is used as it is, since
// the spec of new machines may have changed after its deployment.
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

// knowAddress records the static address of a running machine, so that its release unassigns the address. The previous
// link mode is unknown; auto is assumed, which MAAS gives to every machine that it commissions.
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
