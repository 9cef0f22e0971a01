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
		"When all serve, one should restart": {func(*cluster) {}, "restart etcd-1"},
		"When the controller of the StatefulSet has not said what is new, nobody should": {
			func(c *cluster) { c.revision = "" }, ""},
		"When one is on its way, the next should wait": {
			func(c *cluster) { c.members[1].live = nil; c.members[1].status = nil }, ""},
		"When one ends, the next should wait": {
			func(c *cluster) { c.members[1].live.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, ""},
		"When one answers and the kubelet has not found it ready, the next should wait": {
			func(c *cluster) { updated(c.members[1]); found(c.members[1], corev1.ConditionFalse) }, ""},
		"When one is ready and has not answered, the next should wait": {
			func(c *cluster) { updated(c.members[1]); c.members[1].status = nil }, ""},
		"When one serves again, the next should restart": {
			func(c *cluster) { updated(c.members[1]) }, "restart etcd-2"},
		"When only the leader is left, it should restart": {
			func(c *cluster) { updated(c.members[1]); updated(c.members[2]) }, "restart etcd-0"},
		"When all are done, nobody should": {
			func(c *cluster) { each(c, updated) }, ""},
		"When the host of a member is dead, its pod should be given up, which costs nothing": {
			func(c *cluster) { dead(c.members[2]) }, "restart etcd-2"},
		"When its pod was given up, the others should wait for it": {
			func(c *cluster) {
				dead(c.members[2])
				c.members[2].live.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}, ""},
		"When the kubelet finds a member ready that does not answer, it should restart": {
			func(c *cluster) { c.members[2].status = nil }, "restart etcd-2"},
		"When a member that leads is not found ready, it should not wait for those that wait for it": {
			func(c *cluster) { found(c.members[0], corev1.ConditionFalse) }, "restart etcd-0"},
		"When a member answers that is not found ready, and another is dead, it should stay: it may have the vote that counts": {
			func(c *cluster) {
				found(c.members[1], corev1.ConditionFalse)
				dead(c.members[2])
				updated(c.members[2])
			}, ""},
		"When no member comes up, it should be given the change": {
			func(c *cluster) { silence(c); each(c, dead) }, "restart etcd-0"},
		"When the operator reaches nobody, the kubelet's word should be enough": {
			func(c *cluster) { silence(c); updated(c.members[0]) }, "restart etcd-1"},
		"When the operator reaches nobody, and one is not ready, the others should wait": {
			func(c *cluster) {
				silence(c)
				updated(c.members[0])
				found(c.members[0], corev1.ConditionFalse)
			}, ""},
		"When the cluster has a member of somebody else, nobody should restart": {
			func(c *cluster) { c.strangers = []*etcdserverpb.Member{{ID: 9}} }, ""},
		"When a member learns, nobody should restart": {
			func(c *cluster) {
				c.members[1].listed = &etcdserverpb.Member{ID: 2, IsLearner: true, ClientURLs: []string{"etcd-1"}}
				c.members[1].status = nil
				updated(c.members[1])
			}, ""},
		"When there is but one, it should restart": {
			func(c *cluster) { c.members = c.members[:1] }, "restart etcd-0"},
		"When there is but one, and the operator does not reach it, it should restart": {
			func(c *cluster) { c.members = c.members[:1]; silence(c) }, "restart etcd-0"},
	})
}

// TestRollOutOfMembers restarts real etcds.
func TestRollOutOfMembers(t *testing.T) {
	api := newAPI(t, crds.HyperShift)

	t.Run("When the pods change, members should restart one by one, the leader last, whenever the operator dies", func(t *testing.T) {
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
	t.Run("When the host of a member is dead, the others should restart once it is back", func(t *testing.T) {
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
	t.Run("When the only member's pod changes, it should restart", func(t *testing.T) {
		w := formed(t, api, hyperv1.SingleReplica)
		w.changed("b")
		NewWithT(t).Eventually(func() []string { w.kubelet(); w.pass(); return w.restarted }, healing).Should(Equal([]string{"etcd-0"}))
		w.goesOn("True/AsExpected")
	})
}
