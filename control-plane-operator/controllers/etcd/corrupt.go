// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// hashing is how long members may take to read all that they store: 8 GiB on a slow disk.
const hashing = 2 * time.Minute

// hash asks all members at once for a checksum of what they store, while one of them is said to store something else. All are asked at a
// revision that each has.
func (r *Reconciler) hash(ctx context.Context, c *cluster, members Members) {
	if len(c.corrupt()) == 0 {
		return
	}
	revision := int64(0)
	for _, m := range c.members {
		if m.healthy() && (revision == 0 || m.status.Header.Revision < revision) {
			revision = m.status.Header.Revision
		}
	}
	ctx, cancel := context.WithTimeout(ctx, hashing)
	defer cancel()
	var all sync.WaitGroup
	for _, m := range c.members {
		if !m.healthy() {
			continue
		}
		all.Go(func() {
			// One that does not tell agrees with nobody.
			if answer, err := members.HashKV(ctx, m.clientURL, revision); err == nil {
				m.hash = answer
			}
		})
	}
	all.Wait()
}

// corrupt are the alarms of members whose data differs from that of the others. Etcd serves nobody while there is one.
func (c *cluster) corrupt() []*etcdserverpb.AlarmMember {
	var all []*etcdserverpb.AlarmMember
	for _, alarm := range c.alarms {
		if alarm.Alarm == etcdserverpb.AlarmType_CORRUPT {
			all = append(all, alarm)
		}
	}
	return all
}

// distrust is the next step about a member whose data is corrupt: the cluster forgets it, takes the alarm back, and gets it back with an empty
// volume as one that was lost. It is only taken when all others are well and agree on the data. An alarm of nobody (0) means that etcd itself
// could not tell whose data is right.
func (c *cluster) distrust(via []string) step {
	for _, alarm := range c.corrupt() {
		m := c.byID(alarm.MemberID)
		switch {
		case alarm.MemberID == 0 || !c.othersAgree(m):
		case m != nil:
			// A member that is removed stops before it has answered.
			others := c.urls(func(other *member) bool { return other != m && other.healthy() })
			return step{action: remove, member: m, why: "its data differs from that of the others", via: others}
		default:
			return step{action: disarm, member: c.members[0], alarm: alarm, why: "the member with other data is gone", via: via}
		}
	}
	return step{}
}

// condemned tells whether the alarm of a member stands that was removed for its data. Another in its place would be one more whose data is in
// question, and etcd serves nobody before the alarm is taken back.
func (c *cluster) condemned() bool {
	return slices.ContainsFunc(c.corrupt(), func(alarm *etcdserverpb.AlarmMember) bool {
		return alarm.MemberID != 0 && c.byID(alarm.MemberID) == nil
	})
}

func (c *cluster) byID(id uint64) *member {
	for _, m := range c.members {
		if m.listed != nil && m.listed.ID == id {
			return m
		}
	}
	return nil
}

// othersAgree tells whether all listed members but m are well, enough for a quorum, and store the same.
func (c *cluster) othersAgree(m *member) bool {
	var first *member
	agreeing := 0
	for _, other := range c.members {
		if other == m || other.listed == nil {
			continue
		}
		if !other.healthy() || other.hash == nil {
			return false
		}
		if first == nil {
			first = other
		}
		if other.hash.Hash != first.hash.Hash || other.hash.CompactRevision != first.hash.CompactRevision {
			return false
		}
		agreeing++
	}
	return agreeing > len(c.members)/2 && len(c.strangers) == 0
}
