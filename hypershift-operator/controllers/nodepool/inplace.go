// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/support/nodelabels"
	"github.com/openshift/hypershift/support/upsert"
)

// latecomerAnnotation marks a machine that had an outdated configuration and was not a node yet when the pool got a new
// configuration. The upgrader counts the existing nodes only, so it may finish before this machine joins.
const latecomerAnnotation = "hypershift.openshift.io/joins-with-outdated-config"

// applyMachineSet writes the MachineSet, whose machines are updated in place. The config operator of the hosted
// cluster updates them when the target version differs from the current version. It is the payload's or this
// project's.
func (r *Reconciler) applyMachineSet(ctx context.Context, s *reconciliation, ref clusterv1.ContractVersionedObjectReference) error {
	if err := r.markLatecomers(ctx, s); err != nil {
		return err
	}
	ms := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: s.Pool.Name}}
	var reopened bool
	_, err := upsert.Object(ctx, r.Client, ms, func() error {
		reopened = s.aim(ms)
		template := s.machineTemplate(ref)
		for key, value := range nodelabels.Valid(s.Pool.Spec.NodeLabels) {
			template.Labels[hyperv1.NodeLabelPrefix+"."+key] = value
		}
		template.Annotations[hyperv1.NodePoolTaintsAnnotation] = taintsJSON(s.Pool)
		ms.Spec.ClusterName = s.HC.Spec.InfraID
		ms.Spec.Replicas = replicas(s.Pool, ms.Spec.Replicas)
		// Cluster API adds the cluster's label to a selector without it, so the two would change the MachineSet in turns.
		ms.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{
			s.ResourcesName(): s.ResourcesName(), clusterv1.ClusterNameLabel: ms.Spec.ClusterName,
		}}
		ms.Spec.Template = template
		s.nameKubelet(ms)
		s.shapeMeta(ms)
		scope.Annotate(ms, hyperv1.NodePoolMaxUnavailableAnnotation, strconv.Itoa(maxUnavailable(s.Pool, *ms.Spec.Replicas, s.nodes())))
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.unmarkLatecomers(ctx, s, reopened); err != nil {
		return err
	}
	return r.followMachineSet(ctx, s, ms, ref.Name)
}

// nameKubelet records which kubelet version an updated node must run, for this project's upgrader. If a release does
// not name its Kubernetes version, the release's own version is used.
func (s *reconciliation) nameKubelet(ms *clusterv1.MachineSet) {
	if !s.Distribution().OwnOperators {
		scope.Annotate(ms, hyperv1.NodePoolKubeletVersionAnnotation, cmp.Or(s.Release.ComponentVersions()["kubernetes"], s.Release.Version()))
	}
}

// aim sets the target configuration of the upgrader. The upgrader does nothing while the target equals the current
// version. If some machines do not have the target configuration, aim therefore sets the current version to the one
// that they have. This happens when a pool is reverted during an update, or when a machine joins after the end of an
// update. In the latter case, aim returns true.
func (s *reconciliation) aim(ms *clusterv1.MachineSet) (reopened bool) {
	before, current := ms.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation], ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
	late := s.joinedLate()
	switch {
	case current == "":
		// Machines of a new set are created with the desired configuration.
		current = s.config.Hash
	case current == s.config.Hash && before != "" && before != s.config.Hash:
		current = before
	case current == s.config.Hash && late != "":
		current, reopened = late, true
	}
	scope.Annotate(ms, hyperv1.NodePoolTargetConfigVersionAnnotation, s.config.Hash)
	scope.Annotate(ms, hyperv1.NodePoolCurrentConfigVersionAnnotation, current)
	return reopened
}

// markLatecomers marks the machines that have not joined and whose configuration is outdated. It runs before the
// upgrader gets a new target.
func (r *Reconciler) markLatecomers(ctx context.Context, s *reconciliation) error {
	var failures []error
	for _, machine := range s.Machines {
		if machine.Status.NodeRef.IsDefined() || s.isConfigured(machine) {
			continue
		}
		failures = append(failures, upsert.Patch(ctx, r.Client, machine, func() { scope.Annotate(machine, latecomerAnnotation, "true") }))
	}
	return errors.Join(failures...)
}

// unmarkLatecomers removes the mark from machines that have joined, once aim has restarted the upgrader.
func (r *Reconciler) unmarkLatecomers(ctx context.Context, s *reconciliation, reopened bool) error {
	var failures []error
	for _, machine := range s.latecomers() {
		if s.isConfigured(machine) || reopened && machine.Status.NodeRef.IsDefined() {
			failures = append(failures, upsert.Patch(ctx, r.Client, machine, func() { delete(machine.Annotations, latecomerAnnotation) }))
		}
	}
	return errors.Join(failures...)
}

// joinedLate returns the configuration of a marked machine that has joined; empty if there is none.
func (s *reconciliation) joinedLate() string {
	for _, machine := range s.latecomers() {
		if _, hash := s.ParseSecretName(ptr.Deref(machine.Spec.Bootstrap.DataSecretName, "")); machine.Status.NodeRef.IsDefined() && !s.isConfigured(machine) {
			return hash
		}
	}
	return ""
}

// latecomers returns the marked machines that are not being deleted.
func (s *reconciliation) latecomers() []*clusterv1.Machine {
	var late []*clusterv1.Machine
	for _, machine := range s.Machines {
		if machine.DeletionTimestamp.IsZero() && machine.Annotations[latecomerAnnotation] != "" {
			late = append(late, machine)
		}
	}
	return late
}

// nodes returns the number of the pool's machines that have joined.
func (s *reconciliation) nodes() int {
	count := 0
	for _, machine := range s.Machines {
		if machine.Status.NodeRef.IsDefined() {
			count++
		}
	}
	return count
}

// followMachineSet reads the upgrader's progress from the set's annotations. The machines do not show it, since they
// keep the user-data that they were created with.
func (r *Reconciler) followMachineSet(ctx context.Context, s *reconciliation, ms *clusterv1.MachineSet, template string) error {
	s.observeMachineSet(ms)
	s.reportUpdating(ms)
	if s.underwayInPlace(ms) || len(s.latecomers()) > 0 || available(s.Machines) < ptr.Deref(ms.Spec.Replicas, 0) {
		return nil
	}
	return r.markCurrent(ctx, s, template)
}

// tellUpdating reports which updates the nodes still need, with the upgrader's progress if machines are updated in
// place. A reconcile may end before the phase that reads the MachineSet.
func (r *Reconciler) tellUpdating(ctx context.Context, s *reconciliation) error {
	if !s.InPlace() {
		s.reportUpdating(nil)
		return nil
	}
	ms, key := &clusterv1.MachineSet{}, client.ObjectKey{Namespace: s.Namespace(), Name: s.Pool.Name}
	switch err := r.Client.Get(ctx, key, ms); {
	case apierrors.IsNotFound(err):
		s.reportUpdating(nil)
	case err != nil:
		return fmt.Errorf("reading MachineSet %s: %w", key, err)
	default:
		s.reportUpdating(ms)
	}
	return nil
}

// underwayInPlace reports whether the upgrader has yet to update the set's machines to the desired configuration.
func (s *reconciliation) underwayInPlace(ms *clusterv1.MachineSet) bool {
	return ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] != s.config.Hash
}

// updatingConditions are the conditions of an update of the release and of the configuration.
var updatingConditions = []string{hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType}

// reportInPlace copies the in-place upgrader's progress into conditions, once the upgrader has the desired target.
func (s *reconciliation) reportInPlace(ms *clusterv1.MachineSet) {
	switch late := s.latecomers(); {
	case ms.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation] != s.config.Hash:
	case s.underwayInPlace(ms):
		s.reportUnderway(ms.Annotations[hyperv1.NodePoolUpgradeInProgressTrueAnnotation])
		s.reportFailed(ms.Annotations[hyperv1.NodePoolUpgradeInProgressFalseAnnotation])
	case len(late) > 0:
		s.reportUnderway(fmt.Sprintf(
			"Machine %s is joining with the previous configuration; it is updated after it has joined", late[0].Name))
	}
}

// reportFailed reports the node that the upgrader could not update; it does nothing if failed is empty.
func (s *reconciliation) reportFailed(failed string) {
	if failed == "" {
		return
	}
	for _, conditionType := range updatingConditions {
		if s.Conditions[conditionType].Status == metav1.ConditionTrue {
			s.SetFalse(conditionType, hyperv1.NodePoolInplaceUpgradeFailedReason, failed+
				". The rollout is paused until this node recovers or its Machine is deleted; "+
				"a replacement gets the desired configuration")
		}
	}
}

// reportUnderway reports the progress of an in-place update in the conditions of the update. A pool that is reverted to
// its recorded current configuration counts as updating its configuration.
func (s *reconciliation) reportUnderway(message string) {
	known := false
	for _, conditionType := range updatingConditions {
		if c := s.Conditions[conditionType]; c.Status == metav1.ConditionTrue {
			s.SetTrue(conditionType, cmp.Or(message, c.Message))
			known = true
		}
	}
	if !known {
		s.SetTrue(hyperv1.NodePoolUpdatingConfigConditionType, cmp.Or(message, "Updating nodes to configuration "+s.config.HashWithoutVersion))
	}
}

// maxUnavailable returns how many nodes may be updated at once. The upgrader reads a plain number, and fails if that
// exceeds the number of nodes that it finds.
func maxUnavailable(pool *hyperv1.NodePool, machines int32, nodes int) int {
	inPlace := pool.Spec.Management.InPlace
	if inPlace == nil || inPlace.MaxUnavailable == nil {
		return 1
	}
	share, err := intstr.GetScaledValueFromIntOrPercent(inPlace.MaxUnavailable, int(machines), false)
	if err != nil {
		return 1 // The API server accepts numbers and percentages only.
	}
	return max(min(share, nodes), 1)
}
