// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

const (
	// reasonRestoring means that the machines of the lost cluster are not known yet.
	reasonRestoring = "LookingForMachines"
	// reasonAwaited means that running machines are not claimed by a MaasMachine yet.
	reasonAwaited = "WaitingForMaasMachines"
)

// restore reserves the running machines of the lost MaasCluster, each for a MaasMachine of its pool. It writes all
// records and the time in one patch. A reader sees either all of them or none, and an interrupted reconcile has changed
// nothing.
func (r *Reconciler) restore(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !machine.AwaitsRestore(s.infra) || s.problem != nil {
		return phase.Done()
	}
	found, err := r.running(ctx, s)
	if err != nil {
		p := machine.ProblemOf(err)
		s.problem = &p
		return phase.After(problemEvery)
	}
	before, now := s.infra.DeepCopy(), r.Clock.Now().UTC()
	for id, record := range found {
		record.Since = now
		if err := reservation.Records.Set(s.infra, id, record); err != nil {
			return ctrl.Result{}, err
		}
	}
	s.infra.Annotations[infrav1.RestoredAtAnnotation] = now.Format(time.RFC3339)
	// Set the owner as if this user had allocated the machines. The MaasCluster is then not deleted before the sweep
	// has checked whether machines remain in MAAS.
	s.infra.Annotations[infrav1.OwnerAnnotation] = s.user.Username
	if err := r.Client.Patch(ctx, s.infra, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{}, fmt.Errorf("keeping the machines of the lost cluster on MaasCluster %s: %w", client.ObjectKeyFromObject(before), err)
	}
	r.normal(s.infra, "MachinesFound", fmt.Sprintf("Found %s of MaasCluster %s, which this MaasCluster replaces", condition.Count(len(found), "running machine"), machine.ClusterUID(s.infra)))
	return phase.Done()
}

// running returns the deployed machines whose ownership annotations name the lost MaasCluster, and which have the
// matching allocation key. A machine that was not deployed yet holds no data; the sweep releases it.
func (r *Reconciler) running(ctx context.Context, s *scope) (map[string]reservation.Record, error) {
	owned, err := s.identity.Inventory.Owned(ctx, 0)
	if err != nil {
		return nil, err
	}
	machines := &infrav1.MaasMachineList{}
	if err := r.Reader.List(ctx, machines, inNamespace(s)); err != nil {
		return nil, fmt.Errorf("listing the MaasMachines in namespace %s: %w", s.infra.Namespace, err)
	}
	found := map[string]reservation.Record{}
	for _, m := range owned {
		mark := maas.Allocation{UID: m.Annotations[maas.AnnotationMachineUID], ClusterUID: m.Annotations[maas.AnnotationClusterUID]}
		if m.Status != maas.StatusDeployed || mark.ClusterUID != machine.ClusterUID(s.infra) || held(machines.Items, m.SystemID) {
			continue
		}
		proven, err := s.proves(ctx, m, mark)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", lifecycle.Describe(&m), err)
		}
		if proven {
			found[m.SystemID] = reservation.Record{UID: mark.UID, Deployment: poolOf(m), Hostname: m.Hostname, Restored: true}
		}
	}
	return found, nil
}

// held reports whether a MaasMachine has the machine, for example one that was moved here with its spec.
func held(machines []infrav1.MaasMachine, systemID string) bool {
	return slices.ContainsFunc(machines, func(m infrav1.MaasMachine) bool { return m.Spec.SystemID != nil && *m.Spec.SystemID == systemID })
}

// poolOf returns the pool in the annotations of a machine. Older annotations have only the name of the Machine, which
// is the name of the pool with two random suffixes.
func poolOf(m maas.Machine) string {
	if pool := m.Annotations[maas.AnnotationPool]; pool != "" {
		return pool
	}
	words := strings.Split(m.Annotations[maas.AnnotationMachine], "-")
	return strings.Join(words[:max(0, len(words)-2)], "-")
}

// restoredCondition lists the machines of the lost cluster without a MaasMachine, and the remedies.
func (s *scope) restoredCondition() []metav1.Condition {
	if s.infra.Annotations[infrav1.RestoredFromAnnotation] == "" {
		return nil
	}
	if machine.AwaitsRestore(s.infra) {
		return []metav1.Condition{condition.False(ConditionRestored, reasonRestoring, "MAAS has not yet reported which machines run for the cluster")}
	}
	records := reservation.Records.Of(s.infra)
	var words []string
	for _, id := range record.IDs(records) {
		if record := records[id]; record.Restored {
			words = append(words, fmt.Sprintf("%s (%s) of %s", record.Hostname, id, record.Deployment))
		}
	}
	if len(words) == 0 {
		return []metav1.Condition{condition.True(ConditionRestored, "AsExpected", "")}
	}
	return []metav1.Condition{condition.False(ConditionRestored, reasonAwaited, fmt.Sprintf(
		"No MaasMachine has taken over %s: %s. Scale their pools up to as many replicas; or, to release one, kubectl annotate maascluster -n %s %s %s-",
		condition.Count(len(words), "running machine"), strings.Join(words, ", "), s.infra.Namespace, s.infra.Name, reservation.Records.Key("ID")))}
}
