// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
)

// whole formats a step with all its fields.
func whole(s step) string {
	text := string(s.action)
	if s.member != nil {
		text += " " + s.member.pod
	}
	for _, part := range []string{s.note.String(), strings.Join(s.via, " ")} {
		text += " | " + part
	}
	if s.alarm != nil {
		text += fmt.Sprintf(" | %s of %d", s.alarm.Alarm, s.alarm.MemberID)
	}
	if s.why == "" {
		text += " | for no reason"
	}
	return text
}

// learner makes m a member that the cluster has just added.
func learner(m *member) {
	m.status, m.listed = nil, &etcdserverpb.Member{ID: 4, IsLearner: true}
}

// forgotten makes m a member that was removed from the cluster and has a newer volume.
func forgotten(m *member) {
	m.status, m.listed, m.note.Volume = nil, nil, "former"
}

// TestWholeSteps checks which members execute a step, which note is written, and which alarm is cleared.
func TestWholeSteps(t *testing.T) {
	const wait = " | for no reason"
	joins := component.Note{Stage: component.Joining}
	for name, tc := range map[string]struct {
		edit func(*cluster, *member)
		want string
	}{
		"When a member has lost its volume, the others should remove the member": {func(_ *cluster, m *member) { m.status, m.note.Volume = nil, "former" }, "remove etcd-1 |  | etcd-0 etcd-2"},
		"When a member never started, a changed volume should not matter": {func(_ *cluster, m *member) {
			m.status, m.note = nil, component.Note{Stage: component.Joining, Volume: "former"}
		}, " |  | " + wait},
		"When a member's claim is unknown, it should wait":                                       {func(_ *cluster, m *member) { m.status, m.claim = nil, nil }, " |  | " + wait},
		"When a member answers on another volume, it should note the new volume":                 {func(_ *cluster, m *member) { m.note.Volume = "former" }, "note etcd-1 | Started etcd-1 | "},
		"When a member has no client URLs yet, it should not note it as started":                 {func(_ *cluster, m *member) { m.note, m.listed.ClientURLs = component.Note{}, nil }, " |  | " + wait},
		"When a member has no claim, it should note nothing":                                     {func(_ *cluster, m *member) { m.note, m.claim = component.Note{}, nil }, " |  | " + wait},
		"When a member does not answer, it should note nothing":                                  {func(_ *cluster, m *member) { m.note, m.status = component.Note{}, nil }, " |  | " + wait},
		"When a learner was added, it should note that the member joins":                         {func(_ *cluster, m *member) { learner(m) }, "note etcd-1 | Joining | "},
		"When the Pod of a noted learner waits after a crash, it should restart the Pod at once": {func(_ *cluster, m *member) { learner(m); crashed(m, 1, "Error"); m.note = joins }, "restart etcd-1 |  | "},
		"When a learner has begun to copy the data, it should wait": {func(_ *cluster, m *member) {
			learner(m)
			crashed(m, 1, "Error")
			m.note, m.listed.ClientURLs = joins, []string{"etcd-1"}
		}, " etcd-1 |  | "},
		"When the Pod of a learner runs, it should wait":            {func(_ *cluster, m *member) { learner(m); m.note = joins }, " etcd-1 |  | "},
		"When a learner has the data, the voters should promote it": {func(_ *cluster, m *member) { m.status.IsLearner, m.listed.IsLearner = true, true }, "promote etcd-1 |  | etcd-0 etcd-2"},
		"When a learner that was started before loses its volume, it should remove the member": {func(_ *cluster, m *member) {
			m.status, m.listed.IsLearner, m.note.Volume = nil, true, "former"
		}, "remove etcd-1 |  | etcd-0 etcd-2"},
		"When a removed member still has its old volume, it should renew the volume":      {func(_ *cluster, m *member) { forgotten(m); m.note.Volume = "etcd-1" }, "renew the volume etcd-1 |  | "},
		"When the volume of a removed member is lost, it should renew the volume":         {func(_ *cluster, m *member) { forgotten(m); m.claim.Status.Phase = corev1.ClaimLost }, "renew the volume etcd-1 |  | "},
		"When a removed member has no claim, it should wait":                              {func(_ *cluster, m *member) { forgotten(m); m.claim = nil }, " etcd-1 |  | "},
		"When the claim of a removed member is being deleted, it should wait":             {func(_ *cluster, m *member) { forgotten(m); m.claim.DeletionTimestamp = &metav1.Time{Time: noon} }, " etcd-1 |  | "},
		"When a removed member has an empty volume, it should note that the member joins": {func(_ *cluster, m *member) { forgotten(m) }, "note etcd-1 | Joining | "},
		"When it is noted that a removed member joins, the others should add it":          {func(_ *cluster, m *member) { forgotten(m); m.note = joins }, "add etcd-1 |  | etcd-0 etcd-2"},
		"When the corrupt member is removed, the others should disarm the alarm": {func(c *cluster, m *member) {
			c.alarms = corrupt(2)
			hashes(c, 1, 2, 1)
			m.listed, m.status = nil, nil
		}, "disarm etcd-0 |  | etcd-0 etcd-2 | CORRUPT of 2"},
		"When the corrupt member is unknown, it should still note that a removed member joins": {func(c *cluster, m *member) {
			c.alarms = corrupt(0)
			forgotten(m)
		}, "note etcd-1 | Joining | "},
		"When one of two remaining members is corrupt, it should remove no member": {func(c *cluster, _ *member) {
			c.members = c.members[:2]
			c.alarms = corrupt(2)
			hashes(c, 1, 2)
		}, " |  | " + wait},
		"When one of four members is lost, the other three should remove it": {func(c *cluster, m *member) {
			c.members = append(c.members, three().members[0])
			m.status, m.note.Volume = nil, "former"
		}, "remove etcd-1 |  | etcd-0 etcd-2 etcd-0"},
		"When one of two members is lost, it should remove no member": {func(c *cluster, m *member) {
			c.members = c.members[:2]
			m.status, m.note.Volume = nil, "former"
		}, " |  | " + wait},
	} {
		t.Run(name, func(t *testing.T) {
			c := three()
			tc.edit(c, c.members[1])
			if diff := cmp.Diff(tc.want, whole(c.next(noon))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBoundOfYouth checks that the volume of a failing member is replaced when it is ten minutes old, and not earlier.
func TestBoundOfYouth(t *testing.T) {
	for age, want := range map[time.Duration]string{youngest: "remove etcd-1", youngest - time.Second: ""} {
		c := three()
		crashed(c.members[1], 5, "Error")
		c.members[1].claim.CreationTimestamp = metav1.NewTime(noon.Add(-age))
		if diff := cmp.Diff(want, words(c.next(noon))); diff != "" {
			t.Errorf("after %s: %s", age, diff)
		}
	}
	elsewhere := three().members[1]
	crashed(elsewhere, 2, "Error")
	elsewhere.claim.CreationTimestamp = metav1.NewTime(noon.In(time.FixedZone("elsewhere", 7200)))
	if got := elsewhere.until(noon); !strings.Contains(got, "12:10 UTC") {
		t.Errorf("it is given up %s", got)
	}
	if elsewhere.claim = nil; elsewhere.until(noon) != "" {
		t.Error("a volume that is not there is given up")
	}
}

// TestBoundsOfRoom checks at which share of free space a member is defragmented, and when it accepts writes again.
func TestBoundsOfRoom(t *testing.T) {
	full := []*etcdserverpb.AlarmMember{{MemberID: 2, Alarm: etcdserverpb.AlarmType_NOSPACE}}
	sized := func(c *cluster, size, used int64) {
		each(c, func(m *member) { m.status.DbSize, m.status.DbSizeInUse = size, size })
		c.members[1].status.DbSizeInUse = used
	}
	for name, tc := range map[string]struct {
		edit func(*cluster)
		want string
	}{
		"When 30% of the file is free, it should not defragment":                               {func(c *cluster) { sized(c, 100<<20, 70<<20) }, " |  | "},
		"When more than 30% of the file is free, it should defragment":                         {func(c *cluster) { sized(c, 100<<20, 69<<20) }, "defragment etcd-1 |  | etcd-1"},
		"When the file has the minimum size, it should defragment":                             {func(c *cluster) { sized(c, small, 1<<20) }, "defragment etcd-1 |  | etcd-1"},
		"When the file is below the minimum size, it should not defragment":                    {func(c *cluster) { sized(c, small-1, 1<<20) }, " |  | "},
		"When the database is full and 5% of the file is free, it should not defragment":       {func(c *cluster) { c.alarms, c.compacted = full, 7; sized(c, 100<<20, 95<<20) }, " |  | "},
		"When the database is full and more than 5% of the file is free, it should defragment": {func(c *cluster) { c.alarms, c.compacted = full, 7; sized(c, 100<<20, 94<<20) }, "defragment etcd-1 |  | etcd-1"},
		"When the file has 90% of the quota, it should keep the alarm":                         {func(c *cluster) { c.alarms, c.compacted = full, 7; sized(c, 90<<20, 90<<20) }, " |  | "},
		"When the file has less than 90% of the quota, it should disarm the alarm":             {func(c *cluster) { c.alarms, c.compacted = full, 7; sized(c, 90<<20-1, 90<<20-1) }, "disarm etcd-0 |  | etcd-0 etcd-1 etcd-2 | NOSPACE of 2"},
		"When the database is full and not compacted, it should compact via all members":       {func(c *cluster) { c.alarms = full }, "compact etcd-0 |  | etcd-0 etcd-1 etcd-2"},
		"When the member list is unknown, it should not defragment":                            {func(c *cluster) { c.listed = false; sized(c, 100<<20, 0) }, " |  | "},
		"When the cluster has an unknown member, it should not defragment":                     {func(c *cluster) { c.strangers = []*etcdserverpb.Member{{ID: 9}}; sized(c, 100<<20, 0) }, " |  | "},
		"When a member was removed from the cluster, it should not defragment":                 {func(c *cluster) { c.members[2].listed = nil; sized(c, 100<<20, 0) }, " |  | "},
		"When the file is empty, it should have no free space":                                 {func(c *cluster) { c.alarms, c.compacted = full, 7; sized(c, 0, 0) }, "disarm"},
	} {
		t.Run(name, func(t *testing.T) {
			c := three()
			tc.edit(c)
			got := strings.TrimSuffix(whole(c.maintain(100<<20)), " | for no reason")
			if !strings.HasPrefix(got, tc.want) || tc.want != "disarm" && got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	c := three()
	sized(c, 200<<20, 50<<20)
	if got := c.maintain(1 << 30).why; !strings.Contains(got, "150 of 200 MiB") {
		t.Errorf("it is stopped since %s", got)
	}
}

// TestBoundsOfDisks checks when a disk starts and stops being slow, and when its latency is reported again.
func TestBoundsOfDisks(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct{ before, want disk }{
		"When the latency is at the limit, it should report the disk as slow":              {disk{p99: 10 * ms}, disk{said: 10 * ms}},
		"When the latency is just below the limit, it should not report the disk as slow":  {disk{p99: 10*ms - 1}, disk{}},
		"When a slow disk is fast for the third time, it should report the disk as fast":   {disk{said: 40 * ms, p99: 8*ms - 1, fast: 2}, disk{fast: 3}},
		"When a slow disk is not clearly fast, it should start to count again":             {disk{said: 40 * ms, p99: 8 * ms, fast: 2}, disk{said: 40 * ms}},
		"When the latency rises by half, it should not report the new value":               {disk{said: 20 * ms, p99: 30 * ms}, disk{said: 20 * ms}},
		"When the latency rises by more than half, it should report the new value":         {disk{said: 20 * ms, p99: 31 * ms}, disk{said: 31 * ms}},
		"When the latency falls by a third, it should not report the new value":            {disk{said: 30 * ms, p99: 20 * ms}, disk{said: 30 * ms}},
		"When the latency falls by more than a third, it should report the new value":      {disk{said: 30 * ms, p99: 19 * ms}, disk{said: 19 * ms}},
		"When the latency falls far but only to the limit, it should report the new value": {disk{said: 40 * ms, p99: 10 * ms}, disk{said: 10 * ms}},
		"When the latency falls below the limit, it should not report the new value":       {disk{said: 40 * ms, p99: 9 * ms}, disk{said: 40 * ms}},
		"When the latency is below a second, it should be rounded to milliseconds":         {disk{p99: 999*ms + 400*time.Microsecond}, disk{said: 999 * ms}},
		"When the latency is above a second, it should be rounded to tenths of a second":   {disk{p99: 1249 * ms}, disk{said: 1200 * ms}},
		"When the latency is just above a second, it should be rounded to one second":      {disk{p99: time.Second + 40*ms}, disk{said: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			d := tc.before
			d.evaluate()
			if got := (disk{said: d.said, fast: d.fast}); got != tc.want {
				t.Errorf("said %s, fast %d, want %s and %d", got.said, got.fast, tc.want.said, tc.want.fast)
			}
		})
	}
	c, known := diskFast([]string{"etcd-0", "etcd-1"}, map[string]*disk{"etcd-0": {p99: ms, said: 20 * ms}, "etcd-1": {p99: ms, said: 30 * ms}})
	if !known || !strings.Contains(c.Message, "20 ms on etcd-0, 30 ms on etcd-1") {
		t.Error(c.Message)
	}
	if c, known = diskFast([]string{"etcd-0"}, map[string]*disk{"etcd-0": {p99: ms}}); !known || c.Message != "" {
		t.Errorf("a fast one is known %t: %s", known, c.Message)
	}
}
