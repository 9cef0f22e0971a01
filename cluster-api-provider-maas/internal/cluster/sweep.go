// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

const (
	// reasonOrphansLeft means that a suspected orphan could not be checked or released.
	reasonOrphansLeft = "OrphansLeft"
	// sweepAge is the maximum age of the list of machines in a sweep. The last sweep before the deletion of the
	// MaasCluster reads a new list.
	sweepAge = 2 * time.Minute
	// surveyEvery is how often all machines of the user are checked.
	surveyEvery = time.Hour
	// sweepAfter is the minimum age of a MaasMachine before its allocations are checked. It is also the minimum time for
	// which an allocation lacks the annotation of the cluster.
	sweepAfter = 5 * time.Minute
	// keysPerCall limits the length of a URL.
	keysPerCall = 50
	// eventsRead limits how many events of a machine are searched for its allocation. A machine that was never deployed
	// has few.
	eventsRead = 100
)

// sweep releases machines that were allocated for this cluster and belong to no MaasMachine. Either the MaasMachine was
// removed by force, or the answer to an allocation was lost and a second machine was allocated. sweep only touches
// machines with an allocation key of this provider.
func (r *Reconciler) sweep(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.problem != nil || machine.AwaitsRestore(s.infra) {
		return phase.Done()
	}
	all := !s.infra.DeletionTimestamp.IsZero() || r.surveyDue(s)
	owned, err := r.owned(ctx, s, all)
	if err == nil && all {
		err = r.deleteStrays(ctx, s)
	}
	if err != nil {
		p := machine.ProblemOf(err)
		s.left = &p
		return phase.After(problemEvery)
	}
	suspects := r.suspects(s, owned)
	if len(suspects) == 0 {
		return s.swept()
	}
	// The list must be current; a cache may lag behind.
	machines := &infrav1.MaasMachineList{}
	if err := r.Reader.List(ctx, machines, inNamespace(s)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the MaasMachines in namespace %s: %w", s.infra.Namespace, err)
	}
	for _, m := range suspects {
		orphan, err := r.orphaned(ctx, s, m, machines.Items)
		if err == nil && orphan != "" {
			err = r.releaseOrphan(ctx, s, m, orphan)
		}
		if err != nil {
			s.left = &machine.Problem{Reason: reasonOrphansLeft, Message: fmt.Sprintf("%s: %v", lifecycle.Describe(&m), err)}
		}
	}
	return s.swept()
}

// swept requeues soon while something remains.
func (s *scope) swept() (ctrl.Result, error) {
	if s.left != nil {
		return phase.After(problemEvery)
	}
	return phase.Done()
}

// owned lists the machines that may be orphans. Machines that are not deployed yet are few, and are checked often. All
// machines of the user are listed when the MaasCluster is deleted, and otherwise seldom, since MAAS is slow in
// rendering them. A deployed machine is an orphan only if the finalizer of its MaasMachine was removed by force. The
// first survey is delayed randomly, so that the clusters do not list all machines at the same time.
func (r *Reconciler) owned(ctx context.Context, s *scope, all bool) ([]maas.Machine, error) {
	switch {
	case !s.infra.DeletionTimestamp.IsZero():
		return s.identity.Inventory.Owned(ctx, 0)
	case all:
		return s.identity.Inventory.Owned(ctx, sweepAge)
	}
	return s.identity.Inventory.Allocated(ctx, sweepAge)
}

// surveyDue reports whether all machines of the user should be checked now, and if so, schedules the next check.
func (r *Reconciler) surveyDue(s *scope) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now()
	due, known := r.surveys[s.infra.UID]
	if !known {
		//nolint:gosec // It spreads calls in time, and no secret depends on it.
		due = now.Add(rand.N(surveyEvery))
	}
	is := known && !now.Before(due)
	if is {
		due = now.Add(surveyEvery)
	}
	if r.surveys == nil {
		r.surveys = map[types.UID]time.Time{}
	}
	r.surveys[s.infra.UID] = due
	return is
}

// suspects returns the allocations with the annotation of this cluster, and those that are not deployed yet. Only
// allocations that are not deployed may lack the annotation, or have the annotation of an earlier allocation.
//
// An allocation without the annotation is checked only after sweepAfter. Otherwise each cluster of a busy MAAS would
// check every machine of the other clusters that is about to be deployed. A MaasCluster that is being deleted checks
// all of them.
func (r *Reconciler) suspects(s *scope, owned []maas.Machine) []maas.Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, records, before, young := r.Clock.Now(), handover.Records.Of(s.infra), r.young[s.infra.UID], map[string]time.Time{}
	kept := reservation.Records.Of(s.infra)
	suspects := slices.DeleteFunc(owned, func(m maas.Machine) bool {
		_, known := records[m.SystemID]
		if _, reserved := kept[m.SystemID]; known || reserved {
			return true
		}
		if m.Annotations[maas.AnnotationClusterUID] == machine.ClusterUID(s.infra) {
			return false
		}
		if m.Status != maas.StatusAllocated {
			return true
		}
		since, seen := before[m.SystemID]
		if !seen {
			since = now
		}
		young[m.SystemID] = since
		return s.infra.DeletionTimestamp.IsZero() && now.Sub(since) < sweepAfter
	})
	if r.young == nil {
		r.young = map[types.UID]map[string]time.Time{}
	}
	r.young[s.infra.UID] = young
	return suspects
}

// orphaned returns the key of an allocation that no MaasMachine will use; empty if it is in use or belongs to another
// cluster.
func (r *Reconciler) orphaned(ctx context.Context, s *scope, m maas.Machine, machines []infrav1.MaasMachine) (string, error) {
	byUID := map[string]*infrav1.MaasMachine{}
	for i := range machines {
		if id := machines[i].Spec.SystemID; id != nil && *id == m.SystemID || machine.GivesBack(&machines[i], m.SystemID) {
			return "", nil
		}
		byUID[machine.AllocationUID(&machines[i])] = &machines[i]
	}
	made, err := s.allocation(ctx, m)
	switch {
	case err != nil:
		return "", err
	case made == nil:
		return r.second(ctx, s, m, machines)
	case made.ClusterUID != machine.ClusterUID(s.infra):
		return "", nil
	}
	if living := byUID[made.UID]; living != nil && !r.hasAnother(living) {
		return "", nil // The allocation is being recorded or released.
	}
	return maas.AllocationKey(made.UID), nil
}

// hasAnother reports whether a MaasMachine has a machine and is older than sweepAfter.
func (r *Reconciler) hasAnother(m *infrav1.MaasMachine) bool {
	return m.Spec.SystemID != nil && r.Clock.Since(m.CreationTimestamp.Time) > sweepAfter
}

// allocation returns the objects for which a machine was allocated. It reads the ownership annotations. If they are
// missing or from an earlier allocation, it reads the event log. Either one counts only if the machine has the matching
// allocation key. It returns nil if neither is conclusive.
func (s *scope) allocation(ctx context.Context, m maas.Machine) (*maas.Allocation, error) {
	mark := maas.Allocation{UID: m.Annotations[maas.AnnotationMachineUID], ClusterUID: m.Annotations[maas.AnnotationClusterUID]}
	if proven, err := s.proves(ctx, m, mark); proven || err != nil {
		return &mark, err
	}
	page, err := s.identity.Client.ListEvents(ctx, maas.EventFilter{SystemIDs: []string{m.SystemID}, Level: "DEBUG", Limit: eventsRead})
	if err != nil {
		return nil, err
	}
	for _, event := range page.Events {
		if told, ok := maas.AllocationOf(event.Description); ok {
			proven, err := s.proves(ctx, m, told)
			if !proven {
				return nil, err
			}
			return &told, nil
		}
	}
	return nil, nil
}

func (s *scope) proves(ctx context.Context, m maas.Machine, made maas.Allocation) (bool, error) {
	if made.UID == "" {
		return false, nil
	}
	key, err := s.carriesKey(ctx, m, maas.AllocationKey(made.UID))
	return key != "", err
}

// second returns the allocation key of a machine if a MaasMachine with this key already has another machine. It is
// for machines whose event log does not show the allocation.
func (r *Reconciler) second(ctx context.Context, s *scope, m maas.Machine, machines []infrav1.MaasMachine) (string, error) {
	var keys []string
	for i := range machines {
		if r.hasAnother(&machines[i]) {
			keys = append(keys, maas.AllocationKey(machine.AllocationUID(&machines[i])))
		}
	}
	for start := 0; start < len(keys); start += keysPerCall {
		key, err := s.carriesKey(ctx, m, keys[start:min(start+keysPerCall, len(keys))]...)
		if key != "" || err != nil {
			return key, err
		}
	}
	return "", nil
}

func (s *scope) carriesKey(ctx context.Context, m maas.Machine, keys ...string) (string, error) {
	found, err := s.identity.Client.ListMachines(ctx, maas.MachineFilter{SystemIDs: []string{m.SystemID}, AgentNames: keys})
	if err != nil || len(found) == 0 {
		return "", err
	}
	return keys[0], nil
}

func (r *Reconciler) releaseOrphan(ctx context.Context, s *scope, m maas.Machine, key string) error {
	if lxd.IsVM(m) && key == maas.AllocationKey(lxd.UIDOf(m.Hostname)) {
		return r.deleteOrphan(ctx, s, m)
	}
	if lifecycle.Evaluate(lifecycle.Leaving, &m).Action != lifecycle.Release {
		return nil
	}
	released, err := s.identity.Client.ReleaseMachine(ctx, m.SystemID, machine.ReleaseRequest(eraseMode(m, key), "no MaasMachine uses it"))
	if err != nil {
		s.identity.Inventory.Forget(m.SystemID)
		return err
	}
	s.identity.Inventory.Store(released)
	r.warn(s.infra, "OrphanReleased", fmt.Sprintf("released machine %s (%s), which no MaasMachine uses (allocation key %s)", m.Hostname, m.SystemID, key))
	return nil
}

// eraseMode returns the mode in which the disks of an orphan are erased: the one in its ownership annotations, if they
// are of the allocation with this key. It is empty for a machine that was never installed.
func eraseMode(m maas.Machine, key string) string {
	if !lifecycle.Installed(&m) || key != maas.AllocationKey(m.Annotations[maas.AnnotationMachineUID]) {
		return ""
	}
	return m.Annotations[maas.AnnotationErase]
}
