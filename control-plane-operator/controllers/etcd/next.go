// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"

	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
)

// action is what is done to a member.
type action string

const (
	wait action = ""
	// note writes down how far the member is.
	note action = "note"
	// remove has the cluster forget the member.
	remove action = "remove"
	// renew deletes the volume, and the pod that uses it.
	renew action = "renew the volume"
	// add has the cluster expect the member, which copies the data before it may vote.
	add action = "add"
	// restart deletes the pod, whose successor tries again at once, and is of the newest revision.
	restart action = "restart"
	// promote gives a member that has caught up its vote.
	promote action = "promote"
	// defragment has the member write its database anew, without what is free in it; it answers nobody meanwhile.
	defragment action = "defragment"
	// compact has all members forget all but the newest version of everything.
	compact action = "compact"
	// disarm has the cluster take writes again.
	disarm action = "disarm"
)

const (
	// crashes is how often a container must have ended before its data is given up, and youngest the age that a volume must have
	// reached for it: a new volume does not cure everything, and a member that takes one ill turn after another is for a person.
	crashes  = 5
	youngest = 10 * time.Minute
)

// step is what a pass does, and why. One that waits has a reason if something is under way.
type step struct {
	action action
	member *member
	why    string
	// note goes with the action of that name.
	note component.Note
	// via are the client URLs of members that can be told.
	via []string
	// alarm goes with disarm.
	alarm *etcdserverpb.AlarmMember
}

// next is the next step. Nothing is done to a member that serves unless all others that may vote are well, so that no two are out at a time,
// and nothing to who belongs to the cluster without a quorum, which listing the members takes.
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

// othersWell tells whether the cluster keeps its quorum, and can still bear nothing else, while m is out.
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

// unnoted is the note about a member that runs on its volume, unless it was written already.
func (m *member) unnoted() (component.Note, bool) {
	if !m.answers() || !m.started() || m.claim == nil {
		return component.Note{}, false
	}
	n := component.Note{Stage: component.Started, Volume: string(m.claim.UID)}
	return n, n != m.note
}

// lost says why a member cannot come back; empty means that it can, or that nobody knows.
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

// learn brings a learner to its vote.
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

// rejoin brings a member that the cluster has forgotten back into it, with a volume that the forgotten one did not have.
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

// waits tells whether the kubelet waits until it starts the container again.
func (m *member) waits() bool {
	waiting := m.container().State.Waiting
	return waiting != nil && waiting.Reason == "CrashLoopBackOff" && m.live.DeletionTimestamp.IsZero()
}

// crashing tells whether a member ends again and again.
func (m *member) crashing() bool {
	return m.waits() && m.container().RestartCount >= crashes && m.curable()
}

// curable tells whether a new volume can bring a member back. It does not help one that needs more memory than it may have.
func (m *member) curable() bool {
	last := m.container().LastTerminationState.Terminated
	return last == nil || last.Reason != "OOMKilled"
}

// until says when the volume of a member is given up that has started to end again and again; empty of one that has not, or was given up.
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
	return "with its next end"
}
