// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// hashing is the timeout for members to read all data that they store: 8 GiB on a slow disk.
const hashing = 2 * time.Minute

// hash gets a checksum of the data of each healthy member concurrently, while there is an alarm that the data of a
// member differs. All checksums are taken at a revision that each healthy member has.
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
			// A member without a hash does not count as agreeing.
			if answer, err := members.HashKV(ctx, m.clientURL, revision); err == nil {
				m.hash = answer
			}
		})
	}
	all.Wait()
}

// corrupt returns the alarms of members whose data differs from that of the others. Etcd serves no requests while such
// an alarm is active.
func (c *cluster) corrupt() []*etcdserverpb.AlarmMember {
	var all []*etcdserverpb.AlarmMember
	for _, alarm := range c.alarms {
		if alarm.Alarm == etcdserverpb.AlarmType_CORRUPT {
			all = append(all, alarm)
		}
	}
	return all
}

// distrust returns the next step for a member whose data is corrupt. The member is removed from the cluster and the
// alarm is cleared. Then the member joins again with an empty volume, like a lost one. These steps are only taken when
// all other members are healthy and agree on the data. An alarm without a member (ID 0) means that etcd itself could
// not decide whose data is right.
func (c *cluster) distrust(via []string) step {
	for _, alarm := range c.corrupt() {
		m := c.byID(alarm.MemberID)
		switch {
		case alarm.MemberID == 0 || !c.othersAgree(m):
		case m != nil:
			// A removed member stops before it has answered, so the request goes to other members.
			others := c.urls(func(other *member) bool { return other != m && other.healthy() })
			return step{action: remove, member: m, why: "its data differs from that of the others", via: others}
		default:
			return step{action: disarm, member: c.members[0], alarm: alarm, why: "the member with other data is gone", via: via}
		}
	}
	return step{}
}

// condemned reports whether there is still an alarm of a member that was removed because of its data. While the alarm
// is active, etcd serves no requests. The data of a replacement would be in question as well.
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

// othersAgree reports whether all listed members but m are healthy, form a quorum and store the same data.
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
