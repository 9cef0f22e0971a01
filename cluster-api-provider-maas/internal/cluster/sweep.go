package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

const (
	// sweepAge is how old the list of machines may be that a sweep looks at.
	sweepAge = 2 * time.Minute
	// sweepAfter is how long a MaasMachine must exist before its allocations are judged.
	sweepAfter = 5 * time.Minute
	// keysPerCall bounds the length of a URL.
	keysPerCall = 50
)

// sweep releases machines that were allocated for this cluster and belong to no MaasMachine: those whose MaasMachine was
// removed by force, and second ones that a lost answer left behind. Only what carries our key is touched.
func (r *Reconciler) sweep(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.problem != nil {
		return phase.Done()
	}
	owned, err := s.identity.Inventory.Owned(ctx, sweepAge)
	if err != nil {
		return phase.After(problemEvery)
	}
	suspects := s.suspects(owned)
	if len(suspects) == 0 {
		return phase.Done()
	}
	// What exists must not be told from a cache that lags behind.
	machines := &infrav1.MaasMachineList{}
	if err := r.Reader.List(ctx, machines, inNamespace(s)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the MaasMachines in namespace %s: %w", s.infra.Namespace, err)
	}
	for _, m := range suspects {
		orphan, err := r.orphaned(ctx, s, m, machines.Items)
		if err != nil {
			s.failed++
			continue
		}
		if orphan != "" {
			r.releaseOrphan(ctx, s, m, orphan)
		}
	}
	return phase.Done()
}

// suspects are the allocations that were made for this cluster, or that nobody marked yet.
func (s *scope) suspects(owned []maas.Machine) []maas.Machine {
	var suspects []maas.Machine
	for _, m := range owned {
		mine := m.Annotations[maas.AnnotationClusterUID] == string(s.infra.UID)
		unmarked := m.Annotations[maas.AnnotationMachineUID] == "" && m.Status == maas.StatusAllocated
		if mine || unmarked {
			suspects = append(suspects, m)
		}
	}
	return suspects
}

// orphaned returns the key of an allocation that no MaasMachine will ever use; none when it is in use, or not ours.
func (r *Reconciler) orphaned(ctx context.Context, s *scope, m maas.Machine, machines []infrav1.MaasMachine) (string, error) {
	uids := sets.New[string]()
	for i := range machines {
		if id := machines[i].Spec.SystemID; id != nil && *id == m.SystemID {
			return "", nil
		}
		uids.Insert(machine.AllocationUID(&machines[i]))
	}
	if uid := m.Annotations[maas.AnnotationMachineUID]; uid != "" {
		if uids.Has(uid) {
			return "", nil // It is being recorded, or given back.
		}
		return s.carriesKey(ctx, m, maas.AllocationKey(uid))
	}
	return r.second(ctx, s, m, machines)
}

// second finds the MaasMachine that got another machine, while this one carries its key as well.
func (r *Reconciler) second(ctx context.Context, s *scope, m maas.Machine, machines []infrav1.MaasMachine) (string, error) {
	var keys []string
	for i := range machines {
		if machines[i].Spec.SystemID != nil && r.Clock.Since(machines[i].CreationTimestamp.Time) > sweepAfter {
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

func (r *Reconciler) releaseOrphan(ctx context.Context, s *scope, m maas.Machine, key string) {
	if lifecycle.Judge(lifecycle.Leaving, &m, m.Annotations[maas.AnnotationMachineUID]).Verdict != lifecycle.Release {
		return
	}
	released, err := s.identity.Client.ReleaseMachine(ctx, m.SystemID, maas.ReleaseRequest{Comment: "no MaasMachine uses it"})
	if err != nil {
		s.failed++
		s.identity.Inventory.Forget(m.SystemID)
		return
	}
	s.swept++
	s.identity.Inventory.Store(released)
	r.warn(s.infra, "OrphanReleased", fmt.Sprintf("released %s, which no MaasMachine uses (allocation key %s)", lifecycle.Describe(&m), key))
}
