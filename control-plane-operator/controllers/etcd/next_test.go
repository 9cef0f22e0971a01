// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
)

// three returns three healthy members; etcd-0 is the leader.
func three() *cluster {
	c := &cluster{listed: true}
	for i, pod := range []string{"etcd-0", "etcd-1", "etcd-2"} {
		id := uint64(i + 1)
		c.members = append(c.members, &member{
			pod: pod, clientURL: pod, note: component.Note{Stage: component.Started, Volume: pod},
			status: &clientv3.StatusResponse{Header: &etcdserverpb.ResponseHeader{MemberId: id, Revision: 7}, Leader: 1, DbSize: 100 << 20, DbSizeInUse: 90 << 20},
			listed: &etcdserverpb.Member{ID: id, Name: pod, ClientURLs: []string{pod}},
			claim:  &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: types.UID(pod)}},
			live:   &corev1.Pod{},
		})
	}
	return c
}

func corrupt(id uint64) []*etcdserverpb.AlarmMember {
	return []*etcdserverpb.AlarmMember{{MemberID: id, Alarm: etcdserverpb.AlarmType_CORRUPT}}
}

func hashes(c *cluster, of ...uint32) {
	for i, m := range c.members {
		m.hash = &clientv3.HashKVResponse{Hash: of[i]}
	}
}

// crashed makes m a member whose container has ended that many times, and waits for its next start.
func crashed(m *member, restarts int32, reason string) {
	m.status = nil
	m.live.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "etcd", RestartCount: restarts, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason}},
	}}
}

func TestShared(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes []string
		want  string
	}{
		"When each member has its own node, the message should be empty": {nodes: []string{"a", "b", "c"}},
		"When two members share a node, it should name the node whose failure breaks the quorum": {nodes: []string{"a", "b", "b"},
			want: "etcd-1 and etcd-2 share node b, whose failure breaks the quorum; when a third node has capacity, move one of them there, as docs/how-to/etcd.md says"},
		"When two of three members are scheduled to one node, it should name that node": {nodes: []string{"a", "a", ""},
			want: "etcd-0 and etcd-1 share node a, whose failure breaks the quorum; when a third node has capacity, move one of them there, as docs/how-to/etcd.md says"},
		"When there is one member, the message should be empty": {nodes: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{seen: three()}
			s.seen.members = s.seen.members[:len(tc.nodes)]
			for i, node := range tc.nodes {
				s.seen.members[i].live.Spec.NodeName = node
			}
			if diff := cmp.Diff(tc.want, s.healthy(time.Now()).Message); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOut(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func([]*member)
		want string
	}{
		"When a member does not answer, it should name the member": {
			func(m []*member) { m[1].status = nil }, "No answer from etcd-1: 2 of 3 members are healthy"},
		"When the last member has no leader, it should report it as leaderless and not as silent": {
			func(m []*member) { m[0].status, m[1].status, m[2].status.Leader = nil, nil, 0 },
			"No answer from etcd-0, etcd-1, and no leader for etcd-2: 0 of 3 members are healthy"},
		"When all members answer without a leader, it should report that they have no leader": {
			func(m []*member) { m[0].status.Leader, m[1].status.Leader, m[2].status.Leader = 0, 0, 0 },
			"No leader for etcd-0, etcd-1, etcd-2: 0 of 3 members are healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{seen: three()}
			tc.edit(s.seen.members)
			if diff := cmp.Diff(tc.want, s.healthy(time.Now()).Message); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPatient(t *testing.T) {
	made := time.Date(2026, 11, 23, 12, 24, 0, 0, time.UTC)
	const told = "; if etcd-1 does not recover, its volume is replaced "
	for name, tc := range map[string]struct {
		edit  func(*scope)
		after time.Duration
		want  string
	}{
		"When a member crashed often enough on a young volume, it should report when the volume is replaced": {
			func(s *scope) { crashed(s.seen.members[1], 5, "Error") }, 9 * time.Minute, told + "at 12:34 UTC, when the volume is 10 minutes old"},
		"When a member crashed a few times on a young volume, it should report both conditions": {
			func(s *scope) { crashed(s.seen.members[1], 2, "Error") }, time.Minute, told + "once it has ended 5 times, not before 12:34 UTC"},
		"When a member crashed a few times on an old volume, it should report the number of crashes": {
			func(s *scope) { crashed(s.seen.members[1], 2, "Error") }, time.Hour, told + "once it has ended 5 times"},
		"When a member runs again after enough crashes, it should report that the next crash is the last": {
			func(s *scope) {
				crashed(s.seen.members[1], 5, "Error")
				s.seen.members[1].live.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			}, time.Hour, told + "the next time that it ends"},
		"When a member crashed once, it should report no replacement": {
			func(s *scope) { crashed(s.seen.members[1], 1, "Error") }, time.Minute, ""},
		"When a member was OOM-killed, it should report no replacement": {
			func(s *scope) { crashed(s.seen.members[1], 9, "OOMKilled") }, time.Minute, ""},
		"When another member is down too, it should report no replacement": {
			func(s *scope) { crashed(s.seen.members[1], 5, "Error"); s.seen.members[0].status = nil }, time.Minute, ""},
		"When the control plane is paused, it should report no replacement": {
			func(s *scope) { crashed(s.seen.members[1], 5, "Error"); s.paused = true }, time.Minute, ""},
		"When a member only does not answer, it should report no replacement": {
			func(s *scope) { s.seen.members[1].status = nil }, time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{seen: three()}
			s.seen.members[1].claim.CreationTimestamp = metav1.NewTime(made)
			tc.edit(s)
			if diff := cmp.Diff(tc.want, s.patient(made.Add(tc.after))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// situation is a state of a cluster, and the expected step.
type situation struct {
	edit func(*cluster)
	want string
}

// expectSteps checks which step follows after each change of a healthy cluster.
func expectSteps(t *testing.T, well func() *cluster, next func(*cluster) step, situations map[string]situation) {
	t.Helper()
	for name, tc := range situations {
		t.Run(name, func(t *testing.T) {
			c := well()
			tc.edit(c)
			if diff := cmp.Diff(tc.want, words(next(c))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func nextNow(c *cluster) step { return c.next(time.Now()) }

func TestNext(t *testing.T) {
	expectSteps(t, three, nextNow, map[string]situation{
		"When all members are healthy, it should do nothing": {func(*cluster) {}, ""},
		"When a member does not answer but has its volume, it should wait for the member": {
			func(c *cluster) { c.members[1].status = nil }, ""},
		"When a member crashes repeatedly, it should remove the member": {
			func(c *cluster) { crashed(c.members[1], 5, "Error") }, "remove etcd-1"},
		"When a member crashed a few times, it should wait": {
			func(c *cluster) { crashed(c.members[1], 4, "Error") }, ""},
		"When a member is OOM-killed, it should not replace the volume": {
			func(c *cluster) { crashed(c.members[1], 9, "OOMKilled") }, ""},
		"When a member's PersistentVolume is lost, it should remove the member": {
			func(c *cluster) { c.members[2].status, c.members[2].claim.Status.Phase = nil, corev1.ClaimLost }, "remove etcd-2"},
		"When a member's claim is being deleted, it should wait for the new claim": {
			func(c *cluster) {
				c.members[2].status, c.members[2].claim.DeletionTimestamp = nil, &metav1.Time{Time: time.Now()}
				c.members[2].note.Volume = "former"
			}, ""},
		"When another member is down too, it should do nothing": {
			func(c *cluster) {
				c.members[1].status, c.members[1].note.Volume = nil, "former"
				c.members[2].status = nil
			}, ""},
		"When the member list is unknown, it should do nothing": {
			func(c *cluster) { c.listed, c.members[1].status, c.members[1].note.Volume = false, nil, "former" }, ""},
		"When the cluster has an unknown member, it should leave the repair to the user": {
			func(c *cluster) {
				c.members[1].status, c.members[1].note.Volume = nil, "former"
				c.strangers = []*etcdserverpb.Member{{ID: 9}}
			}, ""},
		"When the data of one member differs, it should remove that member": {
			func(c *cluster) { c.alarms = corrupt(2); hashes(c, 1, 2, 1) }, "remove etcd-1"},
		"When the other members disagree too, it should remove no member": {
			func(c *cluster) { c.alarms = corrupt(2); hashes(c, 1, 2, 3) }, ""},
		"When the hash of another member is unknown, it should remove no member": {
			func(c *cluster) { c.alarms = corrupt(2); hashes(c, 1, 2, 1); c.members[2].hash = nil }, ""},
		"When another member is down, it should not remove the corrupt member": {
			func(c *cluster) { c.alarms = corrupt(2); hashes(c, 1, 2, 1); c.members[2].status = nil }, ""},
		"When the corrupt member is unknown, it should remove no member and keep the alarm": {
			func(c *cluster) { c.alarms = corrupt(0); hashes(c, 1, 1, 1) }, ""},
		"When the corrupt member is removed, it should disarm the alarm before the member is added again": {
			func(c *cluster) {
				c.alarms = corrupt(2)
				hashes(c, 1, 2, 1)
				c.members[1].listed, c.members[1].status = nil, nil
			}, "disarm etcd-0"},
		"When the corrupt member is removed but another's hash is unknown, it should add no member": {
			func(c *cluster) {
				c.alarms = corrupt(2)
				hashes(c, 1, 2, 1)
				c.members[1].listed, c.members[1].status, c.members[2].hash = nil, nil, nil
			}, ""},
		"When the only member is corrupt, it should leave the repair to the user": {
			func(c *cluster) { c.members = c.members[:1]; c.alarms = corrupt(1); hashes(c, 1) }, ""},
		"When a learner was added without a note, it should note that the member joins": {
			func(c *cluster) {
				c.members[1].status, c.members[1].listed = nil, &etcdserverpb.Member{ID: 4, IsLearner: true}
			}, "note etcd-1"},
		"When a learner has the data, it should promote the learner": {
			func(c *cluster) { c.members[1].status.IsLearner, c.members[1].listed.IsLearner = true, true }, "promote etcd-1"},
	})
}

// TestCorruptMemberIsNotAsked checks that the request to remove a corrupt member goes to the other members: a removed
// member stops before it has answered.
func TestCorruptMemberIsNotAsked(t *testing.T) {
	c := three()
	c.alarms = corrupt(2)
	hashes(c, 1, 2, 1)
	if diff := cmp.Diff([]string{c.members[0].clientURL, c.members[2].clientURL}, c.next(time.Now()).via); diff != "" {
		t.Errorf("members that are told to remove etcd-1 (-want +got):\n%s", diff)
	}
}

func TestMaintain(t *testing.T) {
	const quota = 100 << 20
	full := []*etcdserverpb.AlarmMember{{MemberID: 2, Alarm: etcdserverpb.AlarmType_NOSPACE}}
	expectSteps(t, three, func(c *cluster) step { return c.maintain(quota) }, map[string]situation{
		"When a tenth of the file is free, it should not defragment": {func(*cluster) {}, ""},
		"When all files have free space, it should defragment the followers before the leader": {
			func(c *cluster) { c.members[0].status.DbSizeInUse, c.members[2].status.DbSizeInUse = 10<<20, 10<<20 }, "defragment etcd-2"},
		"When only the leader is left, it should defragment the leader": {
			func(c *cluster) { c.members[0].status.DbSizeInUse = 10 << 20 }, "defragment etcd-0"},
		"When the file is small, it should not defragment": {
			func(c *cluster) { c.members[2].status.DbSize, c.members[2].status.DbSizeInUse = 10<<20, 1<<20 }, ""},
		"When a member is down, it should not defragment": {
			func(c *cluster) { c.members[0].status.DbSizeInUse, c.members[1].status = 10<<20, nil }, ""},
		"When a member is full, it should compact first": {
			func(c *cluster) { c.alarms = full }, "compact etcd-0"},
		"When the database is compacted, it should defragment": {
			func(c *cluster) { c.alarms, c.compacted = full, 7 }, "defragment etcd-1"},
		"When no space can be freed, it should keep the alarm": {
			func(c *cluster) {
				c.alarms, c.compacted = full, 7
				for _, m := range c.members {
					m.status.DbSizeInUse = m.status.DbSize
				}
			}, ""},
		"When there is space again, it should disarm the alarm": {
			func(c *cluster) {
				c.alarms, c.compacted = full, 7
				for _, m := range c.members {
					m.status.DbSize, m.status.DbSizeInUse = 50<<20, 50<<20
				}
			}, "disarm etcd-0"},
	})
}

func words(s step) string {
	if s.action == wait {
		return ""
	}
	return string(s.action) + " " + s.member.pod
}
