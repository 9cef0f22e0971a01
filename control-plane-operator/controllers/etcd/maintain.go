// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

const (
	// worthwhile is the share of a database file that must be free before the member is defragmented, which stops it for
	// a moment. Files of less than small bytes are never defragmented. For a full member the lower share
	// worthwhileWhenFull applies.
	worthwhile, worthwhileWhenFull = 0.3, 0.05
	small                          = 64 << 20
	// roomy is the share of the quota below which a member accepts writes again.
	roomy = 0.9
)

// maintain returns the next step when all members are healthy. It defragments one member at a time, and compacts when a
// member rejects writes for lack of space. The API server compacts every few minutes, unless writes are rejected.
func (c *cluster) maintain(quota int64) step {
	if !c.allWell() {
		return step{}
	}
	full, largest, via := c.full(), c.largest(), c.urls((*member).healthy)
	if full != nil && largest.status.Header.Revision > c.compacted {
		return step{action: compact, member: largest, why: "its database is full", via: via}
	}
	if m := c.mostlyFree(full); m != nil {
		return step{action: defragment, member: m, why: fmt.Sprintf("%d of %d MiB of its database hold no data",
			(m.status.DbSize-m.status.DbSizeInUse)>>20, m.status.DbSize>>20), via: []string{m.clientURL}}
	}
	if full != nil && float64(largest.status.DbSize) < roomy*float64(quota) {
		return step{action: disarm, member: largest, alarm: full, why: "there is room again", via: via}
	}
	return step{}
}

func (c *cluster) largest() *member {
	return slices.MaxFunc(c.members, func(a, b *member) int { return cmp.Compare(a.status.DbSize, b.status.DbSize) })
}

func (c *cluster) allWell() bool {
	for _, m := range c.members {
		if !m.healthy() || m.listed == nil {
			return false
		}
	}
	return c.listed && len(c.strangers) == 0
}

// full returns the alarm of a member that has no space for writes; nil if there is none.
func (c *cluster) full() *etcdserverpb.AlarmMember {
	for _, alarm := range c.alarms {
		if alarm.Alarm == etcdserverpb.AlarmType_NOSPACE {
			return alarm
		}
	}
	return nil
}

// mostlyFree returns a member whose file is worth defragmenting, the leader last; nil if there is none.
func (c *cluster) mostlyFree(full *etcdserverpb.AlarmMember) *member {
	var leader *member
	for _, m := range c.members {
		free := float64(m.status.DbSize-m.status.DbSizeInUse) / float64(max(m.status.DbSize, 1))
		switch {
		case full == nil && (free <= worthwhile || m.status.DbSize < small), free <= worthwhileWhenFull:
		case m.leads():
			leader = m
		default:
			return m
		}
	}
	return leader
}

// compacted ignores the error that there was nothing to compact.
func compacted(err error) error {
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil
	}
	return err
}
