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
	"github.com/openshift/hypershift/support/upsert"
)

// latecomerAnnotation marks a machine that was on its way with another configuration when the pool got a new one. The upgrader counts
// the nodes that there are, so it may be through before this one joins.
const latecomerAnnotation = "hypershift.openshift.io/joins-with-outdated-config"

// applyMachineSet makes machines that are updated without being replaced; the config operator of the hosted cluster, the payload's or ours, does
// that when the target differs from the current version.
func (r *Reconciler) applyMachineSet(ctx context.Context, s *scope, ref clusterv1.ContractVersionedObjectReference) error {
	if err := r.markLatecomers(ctx, s); err != nil {
		return err
	}
	ms := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(), Name: s.pool.Name}}
	var reopened bool
	_, err := upsert.Object(ctx, r.Client, ms, func() error {
		reopened = s.aim(ms)
		template := s.machineTemplate(ref)
		for key, value := range s.pool.Spec.NodeLabels {
			template.Labels[hyperv1.NodeLabelPrefix+"."+key] = value
		}
		template.Annotations[hyperv1.NodePoolTaintsAnnotation] = taintsJSON(s.pool)
		ms.Spec.ClusterName = s.hc.Spec.InfraID
		ms.Spec.Replicas = replicas(s.pool, ms.Spec.Replicas)
		ms.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{s.resourcesName(): s.resourcesName()}}
		ms.Spec.Template = template
		s.nameKubelet(ms)
		s.shapeMeta(ms)
		annotate(ms, hyperv1.NodePoolMaxUnavailableAnnotation, strconv.Itoa(maxUnavailable(s.pool, *ms.Spec.Replicas, s.nodes())))
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

// nameKubelet tells our upgrader which kubelet an updated node has to run. A release that does not say which Kubernetes it brings is one of that version.
func (s *scope) nameKubelet(ms *clusterv1.MachineSet) {
	if !s.distribution().OwnOperators {
		annotate(ms, hyperv1.NodePoolKubeletVersionAnnotation, cmp.Or(s.release.ComponentVersions()["kubernetes"], s.release.Version()))
	}
}

// aim tells the upgrader where the machines are to go. It does nothing while the target is what it calls current, so it is told another
// current one when not all machines have that: a pool goes back in the middle of an update, or a machine joined after the end of one,
// for which aim returns true.
func (s *scope) aim(ms *clusterv1.MachineSet) (reopened bool) {
	before, current := ms.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation], ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
	late := s.joinedLate()
	switch {
	case current == "":
		// Machines of a new set are born with the wanted configuration.
		current = s.config.hash
	case current == s.config.hash && before != "" && before != s.config.hash:
		current = before
	case current == s.config.hash && late != "":
		current, reopened = late, true
	}
	annotate(ms, hyperv1.NodePoolTargetConfigVersionAnnotation, s.config.hash)
	annotate(ms, hyperv1.NodePoolCurrentConfigVersionAnnotation, current)
	return reopened
}

// markLatecomers marks the machines on their way whose configuration is outdated, before the upgrader is told of a new target.
func (r *Reconciler) markLatecomers(ctx context.Context, s *scope) error {
	var failures []error
	for _, machine := range s.machines {
		if machine.Status.NodeRef.IsDefined() || s.isConfigured(machine) {
			continue
		}
		failures = append(failures, upsert.Patch(ctx, r.Client, machine, func() { annotate(machine, latecomerAnnotation, "true") }))
	}
	return errors.Join(failures...)
}

// unmarkLatecomers takes the mark from machines that have joined, once the upgrader has been told to look again.
func (r *Reconciler) unmarkLatecomers(ctx context.Context, s *scope, reopened bool) error {
	var failures []error
	for _, machine := range s.latecomers() {
		if s.isConfigured(machine) || reopened && machine.Status.NodeRef.IsDefined() {
			failures = append(failures, upsert.Patch(ctx, r.Client, machine, func() { delete(machine.Annotations, latecomerAnnotation) }))
		}
	}
	return errors.Join(failures...)
}

// joinedLate is the configuration that a marked machine has joined with; empty for none.
func (s *scope) joinedLate() string {
	for _, machine := range s.latecomers() {
		if _, hash := s.parseSecretName(ptr.Deref(machine.Spec.Bootstrap.DataSecretName, "")); machine.Status.NodeRef.IsDefined() && !s.isConfigured(machine) {
			return hash
		}
	}
	return ""
}

// latecomers are the marked machines that stay.
func (s *scope) latecomers() []*clusterv1.Machine {
	var late []*clusterv1.Machine
	for _, machine := range s.machines {
		if machine.DeletionTimestamp.IsZero() && machine.Annotations[latecomerAnnotation] != "" {
			late = append(late, machine)
		}
	}
	return late
}

// nodes is how many machines of the pool have joined.
func (s *scope) nodes() int {
	count := 0
	for _, machine := range s.machines {
		if machine.Status.NodeRef.IsDefined() {
			count++
		}
	}
	return count
}

// followMachineSet takes from the set's annotations how far the upgrader is, which is all that tells of machines that keep
// what they were made with.
func (r *Reconciler) followMachineSet(ctx context.Context, s *scope, ms *clusterv1.MachineSet, template string) error {
	s.observeMachineSet(ms)
	s.reportUpdating(ms)
	if s.underwayInPlace(ms) || len(s.latecomers()) > 0 || available(s.machines) < ptr.Deref(ms.Spec.Replicas, 0) {
		return nil
	}
	return r.markCurrent(ctx, s, template)
}

// tellUpdating reports what nodes have still to get, with what the upgrader has said so far where machines are updated in place: a pass may end before it
// gets to their set.
func (r *Reconciler) tellUpdating(ctx context.Context, s *scope) error {
	if !s.inPlace() {
		s.reportUpdating(nil)
		return nil
	}
	ms, key := &clusterv1.MachineSet{}, client.ObjectKey{Namespace: s.namespace(), Name: s.pool.Name}
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

// underwayInPlace tells whether the upgrader has yet to bring a set's machines to what the pool wants.
func (s *scope) underwayInPlace(ms *clusterv1.MachineSet) bool {
	return ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] != s.config.hash
}

// updatingConditions are those of a release and of a configuration.
var updatingConditions = []string{hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType}

// reportInPlace repeats what the in-place upgrader says, once it has been told of what the pool wants.
func (s *scope) reportInPlace(ms *clusterv1.MachineSet) {
	switch late := s.latecomers(); {
	case ms.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation] != s.config.hash:
	case s.underwayInPlace(ms):
		s.reportUnderway(ms.Annotations[hyperv1.NodePoolUpgradeInProgressTrueAnnotation])
		s.reportFailed(ms.Annotations[hyperv1.NodePoolUpgradeInProgressFalseAnnotation])
	case len(late) > 0:
		s.reportUnderway(fmt.Sprintf("Machine %s is on its way with the configuration from before: it is updated when it has joined", late[0].Name))
	}
}

// reportFailed says which node the upgrader could not bring to what the pool wants; nothing where failed is empty.
func (s *scope) reportFailed(failed string) {
	if failed == "" {
		return
	}
	for _, conditionType := range updatingConditions {
		if s.conditions[conditionType].Status == metav1.ConditionTrue {
			s.reject(conditionType, hyperv1.NodePoolInplaceUpgradeFailedReason, failed+
				". No other node is updated before this one is mended, or its Machine is deleted, which installs another one with the wanted configuration")
		}
	}
}

// reportUnderway says what an update in place is at, in the conditions that tell of it. A pool that goes back to what it remembers as
// current updates its configuration.
func (s *scope) reportUnderway(message string) {
	known := false
	for _, conditionType := range updatingConditions {
		if c := s.conditions[conditionType]; c.Status == metav1.ConditionTrue {
			s.accept(conditionType, cmp.Or(message, c.Message))
			known = true
		}
	}
	if !known {
		s.accept(hyperv1.NodePoolUpdatingConfigConditionType, cmp.Or(message, "Updating nodes to configuration "+s.config.hashWithoutVersion))
	}
}

// maxUnavailable is how many nodes may be updated at once. The upgrader reads a plain number, and trips over one that is greater than
// that of the nodes that it finds.
func maxUnavailable(pool *hyperv1.NodePool, machines int32, nodes int) int {
	inPlace := pool.Spec.Management.InPlace
	if inPlace == nil || inPlace.MaxUnavailable == nil {
		return 1
	}
	share, err := intstr.GetScaledValueFromIntOrPercent(inPlace.MaxUnavailable, int(machines), false)
	if err != nil {
		return 1 // The API server takes nothing else than numbers and shares.
	}
	return max(min(share, nodes), 1)
}
