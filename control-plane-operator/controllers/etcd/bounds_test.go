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
		"When one has lost its volume, the others should remove it": {func(_ *cluster, m *member) { m.status, m.note.Volume = nil, "former" }, "remove etcd-1 |  | etcd-0 etcd-2"},
		"When it never started, it has nothing to lose": {func(_ *cluster, m *member) {
			m.status, m.note = nil, component.Note{Stage: component.Joining, Volume: "former"}
		}, " |  | " + wait},
		"When nothing is known of its claim, it should be waited for":  {func(_ *cluster, m *member) { m.status, m.claim = nil, nil }, " |  | " + wait},
		"When one answers on another volume, that should be noted":     {func(_ *cluster, m *member) { m.note.Volume = "former" }, "note etcd-1 | Started etcd-1 | "},
		"When it has not told where clients find it, it should not be": {func(_ *cluster, m *member) { m.note, m.listed.ClientURLs = component.Note{}, nil }, " |  | " + wait},
		"When it has no claim, nothing should be noted":                {func(_ *cluster, m *member) { m.note, m.claim = component.Note{}, nil }, " |  | " + wait},
		"When it does not answer, nothing should be noted":             {func(_ *cluster, m *member) { m.note, m.status = component.Note{}, nil }, " |  | " + wait},
		"When one was added, that should be noted":                     {func(_ *cluster, m *member) { learner(m) }, "note etcd-1 | Joining | "},
		"When that is noted and its pod waits, it should try at once":  {func(_ *cluster, m *member) { learner(m); crashed(m, 1, "Error"); m.note = joins }, "restart etcd-1 |  | "},
		"When it has begun to copy, it should be waited for": {func(_ *cluster, m *member) {
			learner(m)
			crashed(m, 1, "Error")
			m.note, m.listed.ClientURLs = joins, []string{"etcd-1"}
		}, " etcd-1 |  | "},
		"When its pod runs, it should be waited for":               {func(_ *cluster, m *member) { learner(m); m.note = joins }, " etcd-1 |  | "},
		"When it has the data, the voters should give it its vote": {func(_ *cluster, m *member) { m.status.IsLearner, m.listed.IsLearner = true, true }, "promote etcd-1 |  | etcd-0 etcd-2"},
		"When it was started before and loses its volume, it should be removed": {func(_ *cluster, m *member) {
			m.status, m.listed.IsLearner, m.note.Volume = nil, true, "former"
		}, "remove etcd-1 |  | etcd-0 etcd-2"},
		"When one is forgotten on the volume that it had, it should get another": {func(_ *cluster, m *member) { forgotten(m); m.note.Volume = "etcd-1" }, "renew the volume etcd-1 |  | "},
		"When its volume is lost, it should get another":                         {func(_ *cluster, m *member) { forgotten(m); m.claim.Status.Phase = corev1.ClaimLost }, "renew the volume etcd-1 |  | "},
		"When it has none, it should be waited for":                              {func(_ *cluster, m *member) { forgotten(m); m.claim = nil }, " etcd-1 |  | "},
		"When its volume goes, it should be waited for":                          {func(_ *cluster, m *member) { forgotten(m); m.claim.DeletionTimestamp = &metav1.Time{Time: noon} }, " etcd-1 |  | "},
		"When its volume is empty, that should be noted":                         {func(_ *cluster, m *member) { forgotten(m) }, "note etcd-1 | Joining | "},
		"When that is noted, the others should add it":                           {func(_ *cluster, m *member) { forgotten(m); m.note = joins }, "add etcd-1 |  | etcd-0 etcd-2"},
		"When the member with other data is gone, the others should serve again": {func(c *cluster, m *member) {
			c.alarms = corrupt(2)
			hashes(c, 1, 2, 1)
			m.listed, m.status = nil, nil
		}, "disarm etcd-0 |  | etcd-0 etcd-2 | CORRUPT of 2"},
		"When nobody knows whose data is right, one that the cluster has forgotten should still be on its way": {func(c *cluster, m *member) {
			c.alarms = corrupt(0)
			forgotten(m)
		}, "note etcd-1 | Joining | "},
		"When one of two that are left has other data, nobody should be removed": {func(c *cluster, _ *member) {
			c.members = c.members[:2]
			c.alarms = corrupt(2)
			hashes(c, 1, 2)
		}, " |  | " + wait},
		"When one of four is lost, three should go on": {func(c *cluster, m *member) {
			c.members = append(c.members, three().members[0])
			m.status, m.note.Volume = nil, "former"
		}, "remove etcd-1 |  | etcd-0 etcd-2 etcd-0"},
		"When one of two is lost, the other should be left alone": {func(c *cluster, m *member) {
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

// TestBoundOfYouth: a volume is given up when it is ten minutes old, and not earlier.
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
		"When three tenths are free, that should not matter":                      {func(c *cluster) { sized(c, 100<<20, 70<<20) }, " |  | "},
		"When a little more is, it should be given back":                          {func(c *cluster) { sized(c, 100<<20, 69<<20) }, "defragment etcd-1 |  | etcd-1"},
		"When the file is just large enough, it should too":                       {func(c *cluster) { sized(c, small, 1<<20) }, "defragment etcd-1 |  | etcd-1"},
		"When the file is smaller, it should not":                                 {func(c *cluster) { sized(c, small-1, 1<<20) }, " |  | "},
		"When it is full and a twentieth is free, that should not matter":         {func(c *cluster) { c.alarms, c.compacted = full, 7; sized(c, 100<<20, 95<<20) }, " |  | "},
		"When it is full and more is free, it should be given back":               {func(c *cluster) { c.alarms, c.compacted = full, 7; sized(c, 100<<20, 94<<20) }, "defragment etcd-1 |  | etcd-1"},
		"When it has come to nine tenths of its quota, it should not take writes": {func(c *cluster) { c.alarms, c.compacted = full, 7; sized(c, 90<<20, 90<<20) }, " |  | "},
		"When it has less, it should":                                             {func(c *cluster) { c.alarms, c.compacted = full, 7; sized(c, 90<<20-1, 90<<20-1) }, "disarm etcd-0 |  | etcd-0 etcd-1 etcd-2 | NOSPACE of 2"},
		"When it has to forget first, the others should know":                     {func(c *cluster) { c.alarms = full }, "compact etcd-0 |  | etcd-0 etcd-1 etcd-2"},
		"When members do not say who they are, nobody should be stopped":          {func(c *cluster) { c.listed = false; sized(c, 100<<20, 0) }, " |  | "},
		"When somebody else is among them, nobody should be stopped":              {func(c *cluster) { c.strangers = []*etcdserverpb.Member{{ID: 9}}; sized(c, 100<<20, 0) }, " |  | "},
		"When the cluster has forgotten one, nobody should be stopped":            {func(c *cluster) { c.members[2].listed = nil; sized(c, 100<<20, 0) }, " |  | "},
		"When a file is empty, nothing of it is free":                             {func(c *cluster) { c.alarms, c.compacted = full, 7; sized(c, 0, 0) }, "disarm"},
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
		"When a disk is as slow as it may not be, it should be said":        {disk{p99: 10 * ms}, disk{said: 10 * ms}},
		"When it is a little faster, it should not":                         {disk{p99: 10*ms - 1}, disk{}},
		"When a slow one is fast for the third time, it should be fast":     {disk{said: 40 * ms, p99: 8*ms - 1, fast: 2}, disk{fast: 3}},
		"When it is not quite, it should begin anew":                        {disk{said: 40 * ms, p99: 8 * ms, fast: 2}, disk{said: 40 * ms}},
		"When it is half as slow again, it should not be said anew":         {disk{said: 20 * ms, p99: 30 * ms}, disk{said: 20 * ms}},
		"When it is slower than that, it should":                            {disk{said: 20 * ms, p99: 31 * ms}, disk{said: 31 * ms}},
		"When it is faster by as much, it should not be said anew":          {disk{said: 30 * ms, p99: 20 * ms}, disk{said: 30 * ms}},
		"When it is faster than that, it should":                            {disk{said: 30 * ms, p99: 19 * ms}, disk{said: 19 * ms}},
		"When it is as slow as it may not be after much more, it should":    {disk{said: 40 * ms, p99: 10 * ms}, disk{said: 10 * ms}},
		"When it is faster than it must be, it should not be said":          {disk{said: 40 * ms, p99: 9 * ms}, disk{said: 40 * ms}},
		"When it is read, it should be in milliseconds":                     {disk{p99: 999*ms + 400*time.Microsecond}, disk{said: 999 * ms}},
		"When it is a second and more, tenths of it should be enough":       {disk{p99: 1249 * ms}, disk{said: 1200 * ms}},
		"When it is a second and a little more, it should be called second": {disk{p99: time.Second + 40*ms}, disk{said: time.Second}},
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
