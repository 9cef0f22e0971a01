// SPDX-License-Identifier: Apache-2.0

// Package repair decides whether Cluster API may replace a failing machine of a NodePool.
//
// On bare metal, a replacement erases the machine. It helps only if the cause lies in that machine. So repair is held
// back by default. It is allowed for one machine at a time, and only if other machines show that the cause is not
// shared. The decision depends on objects of the API server alone, and a restart of the operator loses nothing.
package repair

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const (
	// settle is the time in which other machines show a shared cause. Kubernetes notices a silent node after 50 s.
	settle = 2 * time.Minute
	// poll is the time to the next decision while a machine fails. Machines of other pools are not watched.
	poll = time.Minute
	// smallPool is the maximum size of a pool in which one machine at a time may be missing.
	smallPool = 5
	// leaving is how long a deletion holds back other repairs. A drain can wait for the next machine to be repaired.
	leaving = time.Hour
)

// Machine is what a decision uses of one Machine of the cluster.
type Machine struct {
	Name, Zone string
	// OtherPool reports that the machine belongs to another pool of the cluster.
	OtherPool bool
	// Joined reports whether the machine has, or had, a Node. Healthy reports whether the Node is Ready. Starting reports
	// that the machine is being installed and still has time.
	Joined, Healthy, Starting bool
	// Since is when the machine began to fail, or when its Node became Ready. It is zero for a starting machine.
	Since time.Time
	// Due is when the health check replaces the failing machine; zero if it never does.
	Due time.Time
	// Cause is the reason for which the machine fails; empty if it does not.
	Cause string
	// Gone reports that nothing healthy can be lost, because the platform has no such machine any more, or because an
	// administrator requested the replacement. HostLost reports that the platform has lost the host of the machine.
	Gone, HostLost bool
	// WithoutNetwork reports that the Node is not Ready because its pods have no network.
	WithoutNetwork bool
	// Deleted is when the deletion began; zero if it did not. Marked reports that Cluster API is going to delete it.
	Deleted time.Time
	Marked  bool
	// Admitted reports that an earlier decision allowed the replacement.
	Admitted bool
}

func (m Machine) failing() bool { return m.Cause != "" && m.Deleted.IsZero() }

// proven reports whether the platform, or an administrator, names the machine itself as the cause.
func (m Machine) proven() bool { return m.Gone || m.HostLost }

// State is all that a decision depends on.
type State struct {
	Now time.Time
	// Machines are the machines of all pools of the cluster.
	Machines []Machine
	// History holds the recent repairs of the pool.
	History History
	// MaxUnhealthy is how many machines of the pool may fail before none is replaced.
	MaxUnhealthy int
	// Paused reports that the pool or its cluster is paused.
	Paused bool
	// Cluster and Pool are the conditions of the HostedCluster and of the NodePool.
	Cluster, Pool []metav1.Condition
	// Provider is a problem that the platform's provider has with all machines; empty if there is none.
	Provider string
}

// Decision is the result of Decide. If no machine of the pool fails, Reason is empty.
type Decision struct {
	// Machine is the only machine that may be replaced; empty for none.
	Machine string
	// Failing is the machine that the message is about. Reason and Message say why it is not replaced, or that it is.
	Failing, Reason, Message string
	// History is the history with this decision.
	History History
	// After is the time to the next decision; zero to wait for a change of a machine.
	After time.Duration
}

// Decide decides which machine of the pool may be replaced. Each check that does not pass holds the repair back.
func Decide(state State) Decision {
	decision := Decision{History: state.History.keep(state)}
	if slices.ContainsFunc(state.Machines, func(m Machine) bool { return !m.OtherPool && m.failing() }) {
		decision.After = poll
	}
	candidate, found := state.candidate()
	if !found {
		return decision
	}
	decision.Failing = candidate.Name
	state.History = decision.History
	for _, check := range []func(State, Machine) (reason, why string){
		State.paused, State.sharedByCluster, State.sharedByPool, State.sharedByProvider, State.sharedByNetwork,
		State.crowd, State.alone, State.inProgress, State.repeated,
	} {
		if reason, why := check(state, candidate); reason != "" {
			decision.Reason, decision.Message = reason, "Machine "+candidate.Name+" fails and is not replaced: "+why
			return decision
		}
	}
	if state.Now.Before(candidate.Due) {
		decision.After = min(poll, candidate.Due.Sub(state.Now))
		return decision
	}
	decision.Machine, decision.Reason = candidate.Name, hyperv1.NodePoolAsExpectedReason
	decision.Message = "Machine " + candidate.Name + " is being replaced, because it fails alone: " + candidate.Cause
	decision.History = decision.History.with(candidate, state.Now)
	return decision
}

// candidate returns the failing machine that is repaired first. The one that was allowed before comes first, then one
// whose cause is proven, then the one that has failed for the longest time.
func (s State) candidate() (Machine, bool) {
	var all []Machine
	for _, m := range s.Machines {
		settled := m.Gone || s.Now.Sub(m.Since) >= settle
		if !m.OtherPool && m.failing() && !m.Marked && !m.Due.IsZero() && settled {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return Machine{}, false
	}
	return slices.MinFunc(all, func(a, b Machine) int {
		return cmp.Or(first(a.Admitted, b.Admitted), first(a.proven(), b.proven()),
			a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	}), true
}

func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// size returns how many machines of the pool have a Node or fail.
func (s State) size() int {
	n := 0
	for _, m := range s.Machines {
		if !m.OtherPool && m.Deleted.IsZero() && (m.Healthy || m.failing()) {
			n++
		}
	}
	return n
}
