// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// A change of etcd's pods is rolled out here, and not by the StatefulSet, which would stop a member without asking whether the others keep
// the quorum: it looks at nothing but how its pods are, and goes on over one whose host is dead.

// outdated tells whether the pod of a member is of an older revision of the StatefulSet than new ones are, and stays so.
func (c *cluster) outdated(m *member) bool {
	return c.revision != "" && m.live != nil && m.live.DeletionTimestamp.IsZero() &&
		m.live.Labels[appsv1.StatefulSetRevisionLabel] != c.revision
}

// ready tells whether the kubelet finds that a member serves, which takes a quorum.
func (m *member) ready() bool {
	return m.live != nil && m.live.DeletionTimestamp.IsZero() && slices.ContainsFunc(m.live.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// serves tells whether a member counts when another is to be stopped: the kubelet and this operator both reach it. Where the operator reaches
// nobody, it is the operator that has no way to them, such as by a CA that only the next revision trusts, and the kubelet's word is enough.
func (c *cluster) serves(m *member) bool {
	return m.ready() && (m.healthy() || !slices.ContainsFunc(c.members, (*member).answers))
}

// revive replaces an outdated pod that serves nobody, which costs no quorum, and may be what brings one back.
func (c *cluster) revive() step {
	for _, m := range c.members {
		if c.outdated(m) && !m.ready() && !m.healthy() {
			return step{action: restart, member: m, why: "it serves nobody, and its pod is of a former revision"}
		}
	}
	return step{}
}

// roll replaces outdated pods that serve, one at a time, the one that leads last, and none while another is out.
func (c *cluster) roll() step {
	var last *member
	for _, m := range c.members {
		switch {
		case !c.outdated(m) || !c.bears(m):
		case m.leads():
			last = m
		default:
			return step{action: restart, member: m, why: "its pod is of a former revision"}
		}
	}
	if last != nil {
		return step{action: restart, member: last, why: "its pod is of a former revision, and it leads"}
	}
	return step{}
}

// bears tells whether the cluster serves on while m restarts. One that is alone asks nobody.
func (c *cluster) bears(m *member) bool {
	for _, other := range c.members {
		if other != m && !c.serves(other) {
			return false
		}
	}
	return len(c.strangers) == 0
}

// held are the members that run a former revision still.
func (c *cluster) held() []string {
	var held []string
	for _, m := range c.members {
		if c.outdated(m) {
			held = append(held, m.pod)
		}
	}
	return held
}

// waiting says what waits for members that are out; empty if nothing does.
func (c *cluster) waiting() string {
	held := c.held()
	if len(held) == 0 {
		return ""
	}
	return fmt.Sprintf("; a change of etcd waits for that: %s run without it", strings.Join(held, ", "))
}
