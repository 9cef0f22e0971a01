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
	// reasonOrphansLeft tells that what seems to be an orphan could not be looked at, or not be released.
	reasonOrphansLeft = "OrphansLeft"
	// sweepAge is how old the list of machines may be that a sweep looks at; the last one, before the MaasCluster goes, looks now.
	sweepAge = 2 * time.Minute
	// surveyEvery is how often all machines of the user are looked at.
	surveyEvery = time.Hour
	// sweepAfter is how long a MaasMachine must exist before its allocations are looked at, and an allocation without our mark.
	sweepAfter = 5 * time.Minute
	// keysPerCall bounds the length of a URL.
	keysPerCall = 50
	// eventsRead bounds how far back the event log of a machine is searched for its allocation; one that was never deployed has few.
	eventsRead = 100
)

// sweep releases machines that were allocated for this cluster and belong to no MaasMachine: those whose MaasMachine was
// removed by force, and second ones that a lost answer left behind. Only what carries our key is touched.
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
	// What exists must not be told from a cache that lags behind.
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

// swept comes back soon while something is left.
func (s *scope) swept() (ctrl.Result, error) {
	if s.left != nil {
		return phase.After(problemEvery)
	}
	return phase.Done()
}

// owned lists the machines among which orphans may be. Those that are not installed yet are few, and looked at often. All machines of the
// user are listed when the MaasCluster goes, and else seldom, since MAAS takes long to print them: what is installed and has no
// MaasMachine had its finalizer taken off by force. Processes that start together don't ask for that together.
func (r *Reconciler) owned(ctx context.Context, s *scope, all bool) ([]maas.Machine, error) {
	switch {
	case !s.infra.DeletionTimestamp.IsZero():
		return s.identity.Inventory.Owned(ctx, 0)
	case all:
		return s.identity.Inventory.Owned(ctx, sweepAge)
	}
	return s.identity.Inventory.Allocated(ctx, sweepAge)
}

// surveyDue tells that it is time to look at all machines of the user, and if so notes that it is done.
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

// suspects are the allocations that are marked as made for this cluster, and those that are not deployed yet: only then may a mark be
// missing, or be that of an older allocation. One without our mark is looked at when it stays so: each cluster of a busy MAAS would ask
// about each machine of all others that is about to be installed. Who goes looks at all.
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

// orphaned returns the key of an allocation that no MaasMachine will ever use; none when it is in use, or not ours.
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
		return "", nil // It is being recorded, or given back.
	}
	return maas.AllocationKey(made.UID), nil
}

// hasAnother tells that a MaasMachine has got its machine, and not in this moment.
func (r *Reconciler) hasAnother(m *infrav1.MaasMachine) bool {
	return m.Spec.SystemID != nil && r.Clock.Since(m.CreationTimestamp.Time) > sweepAfter
}

// allocation finds out what a machine was allocated for: its mark says so, or, where that is missing or of an older allocation,
// the event log. Either is believed only if the machine carries that key. It is nil when neither knows.
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

// second finds the MaasMachine that got another machine, while this one carries its key as well, without a word of the event log.
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
	released, err := s.identity.Client.ReleaseMachine(ctx, m.SystemID, maas.ReleaseRequest{Comment: "no MaasMachine uses it"})
	if err != nil {
		s.identity.Inventory.Forget(m.SystemID)
		return err
	}
	s.identity.Inventory.Store(released)
	r.warn(s.infra, "OrphanReleased", fmt.Sprintf("released machine %s (%s), which no MaasMachine uses (allocation key %s)", m.Hostname, m.SystemID, key))
	return nil
}
