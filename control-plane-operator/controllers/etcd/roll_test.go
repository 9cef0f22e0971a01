// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/crds"
)

// changed returns three healthy members whose pods have an old revision of the StatefulSet.
func changed() *cluster {
	c := three()
	c.revision = "new"
	for _, m := range c.members {
		m.live.Labels = map[string]string{appsv1.StatefulSetRevisionLabel: "former"}
		found(m, corev1.ConditionTrue)
	}
	return c
}

// found sets whether the kubelet considers a member ready.
func found(m *member, status corev1.ConditionStatus) {
	m.live.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
}

func updated(m *member) { m.live.Labels[appsv1.StatefulSetRevisionLabel] = "new" }

// dead makes m a member on a dead node.
func dead(m *member) {
	m.status = nil
	found(m, corev1.ConditionFalse)
}

func each(c *cluster, do func(*member)) {
	for _, m := range c.members {
		do(m)
	}
}

func silence(c *cluster) {
	c.listed = false
	each(c, func(m *member) { m.status = nil })
}

func TestRollOut(t *testing.T) {
	expectSteps(t, changed, nextNow, map[string]situation{
		"When all members serve, it should restart one member": {func(*cluster) {}, "restart etcd-1"},
		"When the StatefulSet has no update revision yet, it should restart no member": {
			func(c *cluster) { c.revision = "" }, ""},
		"When a Pod is missing, it should wait": {
			func(c *cluster) { c.members[1].live = nil; c.members[1].status = nil }, ""},
		"When a Pod is terminating, it should wait": {
			func(c *cluster) { c.members[1].live.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, ""},
		"When a restarted member answers but its Pod is not ready, it should wait": {
			func(c *cluster) { updated(c.members[1]); found(c.members[1], corev1.ConditionFalse) }, ""},
		"When a restarted Pod is ready but the member does not answer, it should wait": {
			func(c *cluster) { updated(c.members[1]); c.members[1].status = nil }, ""},
		"When the restarted member serves again, it should restart the next one": {
			func(c *cluster) { updated(c.members[1]) }, "restart etcd-2"},
		"When only the leader is left, it should restart the leader": {
			func(c *cluster) { updated(c.members[1]); updated(c.members[2]) }, "restart etcd-0"},
		"When all members are updated, it should restart no member": {
			func(c *cluster) { each(c, updated) }, ""},
		"When a member's node is dead, it should restart that member first": {
			func(c *cluster) { dead(c.members[2]) }, "restart etcd-2"},
		"When the Pod of a dead member is being deleted, it should wait": {
			func(c *cluster) {
				dead(c.members[2])
				c.members[2].live.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}, ""},
		"When a Pod is ready but its member does not answer, it should restart that member first": {
			func(c *cluster) { c.members[2].status = nil }, "restart etcd-2"},
		"When the leader is not ready, it should restart the leader first": {
			func(c *cluster) { found(c.members[0], corev1.ConditionFalse) }, "restart etcd-0"},
		"When a member answers but is not ready and another is down, it should not restart that member": {
			func(c *cluster) {
				found(c.members[1], corev1.ConditionFalse)
				dead(c.members[2])
				updated(c.members[2])
			}, ""},
		"When no member comes up, it should restart one with the new revision": {
			func(c *cluster) { silence(c); each(c, dead) }, "restart etcd-0"},
		"When the operator reaches no member, it should rely on the Ready conditions of the Pods": {
			func(c *cluster) { silence(c); updated(c.members[0]) }, "restart etcd-1"},
		"When the operator reaches no member and a Pod is not ready, it should wait": {
			func(c *cluster) {
				silence(c)
				updated(c.members[0])
				found(c.members[0], corev1.ConditionFalse)
			}, ""},
		"When the cluster has an unknown member, it should restart no member": {
			func(c *cluster) { c.strangers = []*etcdserverpb.Member{{ID: 9}} }, ""},
		"When a member is a learner, it should restart no member": {
			func(c *cluster) {
				c.members[1].listed = &etcdserverpb.Member{ID: 2, IsLearner: true, ClientURLs: []string{"etcd-1"}}
				c.members[1].status = nil
				updated(c.members[1])
			}, ""},
		"When there is only one member, it should restart that member": {
			func(c *cluster) { c.members = c.members[:1] }, "restart etcd-0"},
		"When there is only one member and it is unreachable, it should restart that member": {
			func(c *cluster) { c.members = c.members[:1]; silence(c) }, "restart etcd-0"},
	})
}

// TestRollOutOfMembers restarts real etcds.
func TestRollOutOfMembers(t *testing.T) {
	api := newAPI(t, crds.HyperShift)

	t.Run("When the Pod template changes, it should restart one by one, leader last, also if the operator restarts", func(t *testing.T) {
		for _, dies := range []bool{false, true} {
			g, w := NewWithT(t), formed(t, api, hyperv1.HighlyAvailable)
			w.dies = dies
			leader := w.leader()
			w.changed("b")
			g.Eventually(func() []string { w.kubelet(); w.pass(); return w.restarted }, healing).Should(HaveLen(3))
			w.goesOn("True/AsExpected")
			g.Expect(w.restarted).To(ConsistOf("etcd-0", "etcd-1", "etcd-2"))
			g.Expect(w.restarted[0]).NotTo(Equal(leader))
			g.Expect(w.done).To(BeEmpty(), "who belongs to the cluster stays")
			w.tearDown()
		}
	})
	t.Run("When a member's node is down, it should restart the others only after the member is back", func(t *testing.T) {
		g, w := NewWithT(t), formed(t, api, hyperv1.HighlyAvailable)
		w.members["etcd-1"].off = true
		w.kubelet()
		w.changed("b")
		w.goesOn("False/MemberUnhealthy: No answer from etcd-1: 2 of 3 members are healthy; an update of etcd waits until all members are healthy: etcd-0, etcd-2 still run the previous revision")
		for range 5 {
			w.kubelet()
			w.pass()
		}
		g.Expect(w.restarted).To(Equal([]string{"etcd-1"}), "only what serves nobody restarts")
		w.put("hello", "still here")
		w.members["etcd-1"].off = false
		g.Eventually(func() []string { w.kubelet(); w.pass(); return w.restarted }, healing).Should(HaveLen(3))
		w.goesOn("True/AsExpected")
		g.Expect(w.restarted).To(ConsistOf("etcd-0", "etcd-1", "etcd-2"))
	})
	t.Run("When the Pod template of a single member changes, it should restart that member", func(t *testing.T) {
		w := formed(t, api, hyperv1.SingleReplica)
		w.changed("b")
		NewWithT(t).Eventually(func() []string { w.kubelet(); w.pass(); return w.restarted }, healing).Should(Equal([]string{"etcd-0"}))
		w.goesOn("True/AsExpected")
	})
}
