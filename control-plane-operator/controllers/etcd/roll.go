// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// This controller rolls out changes of etcd's pods. The StatefulSet would stop a member without checking whether the
// others have a quorum. It only considers the state of its pods, and continues even if a pod is on a dead node.

// outdated reports whether the pod of a member has an older revision of the StatefulSet than new pods, and is not being
// deleted.
func (c *cluster) outdated(m *member) bool {
	return c.revision != "" && m.live != nil && m.live.DeletionTimestamp.IsZero() &&
		m.live.Labels[appsv1.StatefulSetRevisionLabel] != c.revision
}

// ready reports whether the kubelet considers the member ready, which takes a quorum.
func (m *member) ready() bool {
	return m.live != nil && m.live.DeletionTimestamp.IsZero() && slices.ContainsFunc(m.live.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// serves reports whether a member counts as available before another member is stopped: both the kubelet and this
// operator reach it. If the operator reaches no member, the problem is on its side, such as a CA that only the next
// revision trusts. Then the kubelet's result is enough.
func (c *cluster) serves(m *member) bool {
	return m.ready() && (m.healthy() || !slices.ContainsFunc(c.members, (*member).answers))
}

// revive replaces an outdated pod that does not serve. The member does not count for the quorum, and its new pod may
// restore a lost quorum.
func (c *cluster) revive() step {
	for _, m := range c.members {
		if c.outdated(m) && !m.ready() && !m.healthy() {
			return step{action: restart, member: m, why: "it does not serve, and its pod has an outdated revision"}
		}
	}
	return step{}
}

// roll replaces outdated pods that serve, one at a time and the leader last. It replaces none while another member is
// down.
func (c *cluster) roll() step {
	var last *member
	for _, m := range c.members {
		switch {
		case !c.outdated(m) || !c.bears(m):
		case m.leads():
			last = m
		default:
			return step{action: restart, member: m, why: "its pod has an outdated revision"}
		}
	}
	if last != nil {
		return step{action: restart, member: last, why: "its pod has an outdated revision, and it is the leader"}
	}
	return step{}
}

// bears reports whether the cluster keeps serving while m restarts: all other members serve. A single member may
// always restart.
func (c *cluster) bears(m *member) bool {
	for _, other := range c.members {
		if other != m && !c.serves(other) {
			return false
		}
	}
	return len(c.strangers) == 0
}

// held returns the members that still run a previous revision.
func (c *cluster) held() []string {
	var held []string
	for _, m := range c.members {
		if c.outdated(m) {
			held = append(held, m.pod)
		}
	}
	return held
}

// waiting describes the updates that wait for members that are down; empty if none does.
func (c *cluster) waiting() string {
	held := c.held()
	if len(held) == 0 {
		return ""
	}
	return fmt.Sprintf("; an update of etcd waits until all members are healthy: %s still run the previous revision", strings.Join(held, ", "))
}
