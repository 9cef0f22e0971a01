// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"

	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
)

// action is an operation on a member.
type action string

const (
	wait action = ""
	// note stores the progress of the member.
	note action = "note"
	// remove removes the member from the cluster.
	remove action = "remove"
	// renew deletes the volume, and the pod that uses it.
	renew action = "renew the volume"
	// add adds the member to the cluster as a learner, which copies the data before it may vote.
	add action = "add"
	// restart deletes the pod. Its successor retries immediately and has the newest revision.
	restart action = "restart"
	// promote makes a learner that has caught up a voter.
	promote action = "promote"
	// defragment makes the member rewrite its database without the free space; it serves no requests until it is done.
	defragment action = "defragment"
	// compact makes all members discard all but the newest version of every key.
	compact action = "compact"
	// disarm clears the alarm, so that the cluster accepts writes again.
	disarm action = "disarm"
)

const (
	// crashes is how often a container must have ended before its volume is replaced, and youngest the minimum age of
	// that volume. They limit the replacements: a new volume does not fix every failure, and a member that keeps failing
	// needs an administrator.
	crashes  = 5
	youngest = 10 * time.Minute
)

// step is the action of a reconcile and its reason. A step that waits has a reason if something is in progress.
type step struct {
	action action
	member *member
	why    string
	// note is the note that the action note stores.
	note component.Note
	// via are the client URLs of members that can execute the action.
	via []string
	// alarm is set for disarm.
	alarm *etcdserverpb.AlarmMember
}

// next returns the next step. It only changes a serving member if all other voters are healthy, so that no two members
// are down at the same time. It only changes the membership if the cluster has a quorum. A cluster that returned its
// member list has one.
func (c *cluster) next(now time.Time) step {
	if s := c.revive(); s.action != wait {
		return s
	}
	if !c.listed {
		return c.roll()
	}
	for _, m := range c.members {
		if n, ok := m.unnoted(); ok {
			return step{action: note, member: m, note: n, why: "it has started"}
		}
	}
	via := c.urls((*member).healthy)
	if s := c.distrust(via); s.action != wait || c.condemned() {
		return s
	}
	for _, m := range c.members {
		if m.listed != nil && m.listed.IsLearner {
			return m.learn(now, via)
		}
	}
	for _, m := range c.members {
		if !c.othersWell(m) {
			continue
		}
		if m.listed == nil {
			return m.rejoin(via)
		}
		if why := m.lost(now); why != "" {
			return step{action: remove, member: m, why: why, via: via}
		}
	}
	return c.roll()
}

// othersWell reports whether all other members are healthy, and form a quorum without m.
func (c *cluster) othersWell(m *member) bool {
	voters := 0
	for _, other := range c.members {
		if other == m {
			continue
		}
		if !other.healthy() {
			return false
		}
		voters++
	}
	return voters > len(c.members)/2 && len(c.strangers) == 0
}

// unnoted returns the note about a member that runs on its volume, and whether the note must still be stored.
func (m *member) unnoted() (component.Note, bool) {
	if !m.answers() || !m.started() || m.claim == nil {
		return component.Note{}, false
	}
	n := component.Note{Stage: component.Started, Volume: string(m.claim.UID)}
	return n, n != m.note
}

// lost returns the reason why a member cannot come back; empty if it can, or if that is unknown.
func (m *member) lost(now time.Time) string {
	switch {
	case m.status != nil || m.claim == nil || !m.claim.DeletionTimestamp.IsZero():
		return ""
	case m.claim.Status.Phase == corev1.ClaimLost:
		return "the PersistentVolume of its claim is gone"
	case m.note.Stage == component.Started && m.note.Volume != string(m.claim.UID):
		return "its volume was replaced by an empty one"
	case m.crashing() && now.Sub(m.claim.CreationTimestamp.Time) >= youngest:
		return fmt.Sprintf("it ended %d times and does not come up with its data", m.container().RestartCount)
	}
	return ""
}

// learn returns the next step that makes a learner a voter.
func (m *member) learn(now time.Time, via []string) step {
	switch {
	case m.started() && m.answers():
		return step{action: promote, member: m, why: "it has the data", via: via}
	case m.started() && m.lost(now) != "":
		return step{action: remove, member: m, why: m.lost(now), via: via}
	case m.note.Stage != component.Joining && !m.started():
		return step{action: note, member: m, note: component.Note{Stage: component.Joining}, why: "it was added"}
	case !m.started() && m.waits():
		return step{action: restart, member: m, why: "it may join now"}
	}
	return step{member: m, why: "it copies the data"}
}

// rejoin returns the next step that adds a removed member again, with a volume that the removed one did not have.
func (m *member) rejoin(via []string) step {
	switch {
	case m.claim == nil || !m.claim.DeletionTimestamp.IsZero():
		return step{member: m, why: "its new volume is not there yet"}
	case m.claim.Status.Phase == corev1.ClaimLost || m.note.Volume == string(m.claim.UID):
		return step{action: renew, member: m, why: "its data is that of a member that was removed"}
	case m.note.Stage != component.Joining:
		return step{action: note, member: m, note: component.Note{Stage: component.Joining}, why: "its volume is empty"}
	}
	return step{action: add, member: m, why: "its volume is empty", via: via}
}

func (m *member) container() corev1.ContainerStatus {
	if m.live != nil {
		for _, status := range m.live.Status.ContainerStatuses {
			if status.Name == component.Name {
				return status
			}
		}
	}
	return corev1.ContainerStatus{}
}

// waits reports whether the kubelet waits before it starts the container again.
func (m *member) waits() bool {
	waiting := m.container().State.Waiting
	return waiting != nil && waiting.Reason == "CrashLoopBackOff" && m.live.DeletionTimestamp.IsZero()
}

// crashing reports whether the container of a member ends repeatedly.
func (m *member) crashing() bool {
	return m.waits() && m.container().RestartCount >= crashes && m.curable()
}

// curable reports whether a new volume can repair a member. It does not help a member that exceeds its memory limit.
func (m *member) curable() bool {
	last := m.container().LastTerminationState.Terminated
	return last == nil || last.Reason != "OOMKilled"
}

// until returns when the volume of a repeatedly ending member will be replaced. It is empty if the member does not end
// repeatedly, or if its volume is already due for replacement.
func (m *member) until(now time.Time) string {
	if m.status != nil || m.claim == nil || !m.curable() || m.container().RestartCount < 2 || m.lost(now) != "" {
		return ""
	}
	old := m.claim.CreationTimestamp.Add(youngest)
	at, few, young := old.UTC().Format("15:04 UTC"), m.container().RestartCount < crashes, now.Before(old)
	switch {
	case few && young:
		return fmt.Sprintf("once it has ended %d times, not before %s", crashes, at)
	case few:
		return fmt.Sprintf("once it has ended %d times", crashes)
	case young:
		return fmt.Sprintf("at %s, when the volume is %.0f minutes old", at, youngest.Minutes())
	}
	return "the next time that it ends"
}
