// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestMembers runs real etcd members.
func TestMembers(t *testing.T) {
	api := newAPI(t, crds.HyperShift)
	healed := []string{"remove", "add", "promote"}

	t.Run("When a member's volume is replaced, it should remove, add and promote it, also if the operator restarts", func(t *testing.T) {
		for _, dies := range []bool{false, true} {
			w := formed(t, api, hyperv1.HighlyAvailable)
			w.dies = dies
			w.replaceVolume("etcd-1")
			w.untilHealed(healed)
			if got := w.read("etcd-1"); got != "world" {
				t.Errorf("the member has %q of what was written before it was lost", got)
			}
			w.tearDown()
		}
	})
	t.Run("When a volume is wiped in place, it should wait until the volume is old enough, then replace it", func(t *testing.T) {
		testenv.Long(t)
		g, w := NewWithT(t), formed(t, api, hyperv1.HighlyAvailable)
		before := w.claim("etcd-2").UID
		w.wipe("etcd-2")
		for range crashes + 2 {
			g.Eventually(func() bool { w.kubelet(); return w.members["etcd-2"].cmd == nil }, healing, 100*time.Millisecond).Should(BeTrue())
			w.pass()
		}
		g.Eventually(func() string { w.pass(); return w.condition(hyperv1.EtcdMembersHealthy) }, healing, 100*time.Millisecond).Should(MatchRegexp(`^False/MemberUnhealthy: No answer from etcd-2: 2 of 3 members are healthy; ` +
			`if etcd-2 does not recover, its volume is replaced at \d\d:\d\d UTC, when the volume is 10 minutes old$`))
		g.Expect(w.done).To(BeEmpty(), "a volume that is this young is not given up")
		w.clock.SetTime(time.Now().Add(youngest))
		w.untilHealed(healed)
		g.Expect(w.claim("etcd-2").UID).NotTo(Equal(before))
		g.Expect(w.read("etcd-2")).To(Equal("world"))
	})
	t.Run("When a second member is down, it should replace the lost member only after the second is back", func(t *testing.T) {
		testenv.Long(t)
		g, w := NewWithT(t), formed(t, api, hyperv1.HighlyAvailable)
		w.members["etcd-0"].off = true
		w.replaceVolume("etcd-1")
		// This is the final state. The third member notices only after a moment that the leader is gone.
		w.goesOn("False/MemberUnhealthy: No answer from etcd-0, etcd-1, and no leader for etcd-2: 0 of 3 members are healthy")
		for range 5 {
			w.kubelet()
			w.pass()
		}
		g.Expect(w.done).To(BeEmpty())
		w.members["etcd-0"].off = false
		w.untilHealed(healed)
	})
	t.Run("When two volumes are lost, it should report the lost quorum and change nothing", func(t *testing.T) {
		g, w := NewWithT(t), formed(t, api, hyperv1.HighlyAvailable)
		w.replaceVolume("etcd-0")
		w.replaceVolume("etcd-1")
		w.goesOn("False/QuorumLost: The data of etcd-0, etcd-1 is lost, and the 1 of 3 members that are left have no quorum")
		g.Expect(w.done).To(BeEmpty())
	})
	t.Run("When the only member loses its volume, it should not start empty", func(t *testing.T) {
		g, w := NewWithT(t), formed(t, api, hyperv1.SingleReplica)
		w.replaceVolume("etcd-0")
		w.goesOn("False/QuorumLost: The data of etcd-0 is lost")
		g.Eventually(func() int32 { w.kubelet(); w.pass(); return w.members["etcd-0"].restarts }, healing, 100*time.Millisecond).Should(BeNumerically(">=", 2))
		g.Expect(w.done).To(BeEmpty())
	})
	t.Run("When a user removes a member, it should come back with a new volume", func(t *testing.T) {
		testenv.Long(t)
		w := formed(t, api, hyperv1.HighlyAvailable)
		w.tell(func(ctx context.Context, c Members) error {
			list, err := c.MemberList(ctx)
			if err != nil {
				return err
			}
			for _, m := range list.Members {
				// The request is rejected until the members have been connected for some seconds. The answer is lost if the removed
				// member itself had to send it.
				for m.Name == "etcd-1" && len(w.done) == 0 && ctx.Err() == nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
					try, cancel := context.WithTimeout(ctx, 10*time.Second)
					_, err = c.MemberRemove(try, m.ID)
					cancel()
				}
			}
			if errors.Is(err, rpctypes.ErrMemberNotFound) {
				return nil
			}
			return err
		})
		w.done = nil
		w.untilHealed([]string{"add", "promote"})
	})
	t.Run("When the database is full, it should compact and defragment, the leader last, and disarm the alarm", func(t *testing.T) {
		g := NewWithT(t)
		w := formed(t, api, hyperv1.HighlyAvailable, func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Etcd.Managed.Storage.PersistentVolume = &hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse("20Mi"))}
		})
		leader := w.leader()
		w.tell(func(ctx context.Context, c Members) error {
			var err error
			for ctx.Err() == nil && !errors.Is(err, rpctypes.ErrNoSpace) { // A busy etcd rejects requests for other reasons too.
				_, err = c.Put(ctx, "large", strings.Repeat("x", 1<<20))
			}
			g.Expect(err).To(MatchError(rpctypes.ErrNoSpace))
			return nil
		})
		w.goesOn("False/AlarmRaised: Alarms are raised: NOSPACE by etcd-")
		w.goesOn("True/AsExpected")
		g.Expect(len(w.done)).To(BeNumerically(">=", 5))
		g.Expect(w.done[0]).To(Equal("compact"))
		g.Expect(w.done[3:]).To(ContainElement("disarm"))
		if leader == w.leader() { // On a busy machine, the members may have elected another leader in the meantime.
			g.Expect(w.done[1:3]).NotTo(ContainElement("defragment " + leader))
			g.Expect(w.done[3:]).To(ContainElement("defragment " + leader))
		}
		w.put("large", "no more")
	})
	t.Run("When a member's data is corrupt, it should replace the member while the others serve", func(t *testing.T) {
		w := formed(t, api, hyperv1.HighlyAvailable)
		w.corrupt("etcd-1")
		w.goesOn("False/MemberReplaced: Member etcd-1 is replaced: its data differs from that of the others")
		w.untilHealed([]string{"remove", "disarm", "add", "promote"})
		if got := w.read("etcd-1"); got != "world" {
			t.Errorf("the member has %q of what was written before", got)
		}
	})
	t.Run("When the only member is corrupt, it should report what to do and change nothing", func(t *testing.T) {
		g, w := NewWithT(t), formed(t, api, hyperv1.SingleReplica)
		w.corrupt("etcd-0")
		w.goesOn("False/AlarmRaised: Alarms are raised: CORRUPT by etcd-0; not serving")
		g.Expect(w.condition(hyperv1.EtcdMembersHealthy)).To(ContainSubstring("Restore a snapshot"))
		g.Expect(w.done).To(BeEmpty())
	})
	t.Run("When the disk is slow for five minutes, it should report it once and not rewrite the condition", func(t *testing.T) {
		g, w := NewWithT(t), formed(t, api, hyperv1.SingleReplica)
		w.unhurried()
		w.pass()
		for range enoughSyncs {
			w.put("hello", "world")
		}
		g.Expect(w.condition(hyperv1.EtcdDiskFast)).To(Equal("none"), "nothing is known yet")
		w.clock.SetTime(w.clock.Now().Add(diskWindow))
		w.pass()
		g.Expect(w.condition(hyperv1.EtcdDiskFast)).To(Or(HavePrefix("True"), HavePrefix("False/DiskTooSlow")), "by etcd's own metrics of this machine's disk")
		w.operator = w.reconciler()
		for i, text := range []string{page(1, 0, 0, 0, 0, 0), page(1, 980, 0, 20, 0, 0), page(1, 1960, 0, 40, 0, 0)} {
			w.pages = map[string]string{"etcd-0": text}
			w.clock.SetTime(w.clock.Now().Add(diskWindow))
			counted := &testenv.Writes{}
			w.operator.Client = counted.Client(w.client)
			w.pass()
			if i == 2 {
				g.Expect(counted.Count).To(Equal(0))
			}
		}
		g.Expect(w.condition(hyperv1.EtcdDiskFast)).To(Equal("False/DiskTooSlow: The disk is too slow for etcd: p99 of fsync is 40 ms on etcd-0, must be < 10 ms"))
	})
	t.Run("When the control plane is paused, it should report the state of the members and change nothing", func(t *testing.T) {
		g, w := NewWithT(t), formed(t, api, hyperv1.HighlyAvailable)
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp)).To(Succeed())
		w.hcp.Spec.PausedUntil = ptr.To("true")
		g.Expect(api.Update(t.Context(), w.hcp)).To(Succeed())
		w.replaceVolume("etcd-1")
		w.goesOn("False/MemberUnhealthy: No answer from etcd-1: 2 of 3 members are healthy")
		g.Expect(w.done).To(BeEmpty())
	})
	t.Run("When all members are healthy, it should write nothing", func(t *testing.T) {
		g, w := NewWithT(t), formed(t, api, hyperv1.SingleReplica)
		w.unhurried()
		counted := &testenv.Writes{}
		w.operator.Client = counted.Client(w.client)
		w.pass()
		w.pass()
		g.Expect(counted.Count).To(Equal(0))
	})
}

// formed returns a cluster that contains some data.
func formed(t *testing.T, api client.WithWatch, policy hyperv1.AvailabilityPolicy, edit ...func(*hyperv1.HostedControlPlane)) *world {
	t.Helper()
	w := newWorld(t, api, policy, edit...)
	w.goesOn("True/AsExpected")
	g := NewWithT(t)
	g.Eventually(func() []component.Stage { w.pass(); return w.stages() }, healing, 100*time.Millisecond).
		Should(HaveEach(component.Started), "every member is noted")
	w.put("hello", "world")
	return w
}

// put writes to the cluster. On a busy machine, the cluster may reject that for a moment, for example after a change of
// leader.
func (w *world) put(key, value string) {
	w.t.Helper()
	w.tell(func(ctx context.Context, c Members) error {
		_, err := c.Put(ctx, key, value)
		for err != nil && ctx.Err() == nil {
			_, err = c.Put(ctx, key, value)
		}
		return err
	})
}

// unhurried gives the members, which are all up, more time to answer.
func (w *world) unhurried() {
	w.patience = healing
	w.operator = w.reconciler()
}

func (w *world) stages() []component.Stage {
	notes, err := component.ReadNotes(w.t.Context(), w.client, namespace)
	w.must(err)
	var stages []component.Stage
	for pod := range w.members {
		stages = append(stages, notes[pod].Stage)
	}
	return stages
}

func (w *world) tell(what func(context.Context, Members) error) {
	w.t.Helper()
	var urls []string
	for pod := range w.members {
		urls = append(urls, w.clientURL(namespace, pod))
	}
	c, err := w.dial(w.t.Context(), namespace, urls)
	w.must(err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), healing)
	defer cancel()
	w.must(what(ctx, c))
}

// untilHealed lets time pass until all members are healthy again, and checks the steps that were taken.
func (w *world) untilHealed(steps []string) {
	w.t.Helper()
	NewWithT(w.t).Eventually(func() string {
		w.kubelet()
		w.pass()
		return cmp.Diff(steps, w.done)
	}, healing, 200*time.Millisecond).Should(BeEmpty(), w.members["etcd-1"].said)
	w.goesOn("True/AsExpected")
	if diff := cmp.Diff(steps, w.done); diff != "" {
		w.t.Errorf("more than was needed was done: %s", diff)
	}
	if got := w.condition(hyperv1.EtcdRecoveryActive); got != "False/AsExpected: " {
		w.t.Errorf("EtcdRecoveryActive is %s", got)
	}
}

// read reads from the data of one member.
func (w *world) read(pod string) string {
	w.t.Helper()
	c, err := w.dial(w.t.Context(), namespace, []string{w.clientURL(namespace, pod)})
	w.must(err)
	defer c.Close()
	r, err := c.Get(w.t.Context(), "hello", clientv3.WithSerializable())
	w.must(err)
	if len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[0].Value)
}

// corrupt raises the alarm of etcd for a member with different data.
func (w *world) corrupt(pod string) {
	w.t.Helper()
	raw, err := clientv3.New(clientv3.Config{Endpoints: []string{w.clientURL(namespace, pod)}, DialTimeout: AnswerTimeout})
	w.must(err)
	defer raw.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), healing)
	defer cancel()
	status, err := raw.Status(ctx, w.clientURL(namespace, pod))
	w.must(err)
	alarm := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId, Alarm: etcdserverpb.AlarmType_CORRUPT}
	_, err = etcdserverpb.NewMaintenanceClient(raw.ActiveConnection()).Alarm(ctx, alarm)
	// As in put, a busy etcd rejects requests for a moment. Raising an alarm twice has no further effect.
	for err != nil && ctx.Err() == nil {
		_, err = etcdserverpb.NewMaintenanceClient(raw.ActiveConnection()).Alarm(ctx, alarm)
	}
	w.must(err)
}

func (w *world) leader() (leader string) {
	w.t.Helper()
	NewWithT(w.t).Eventually(func() string {
		seen, err := w.reconciler().look(w.t.Context(), w.hcp)
		w.must(err)
		for _, m := range seen.members {
			if m.leads() {
				leader = m.pod
			}
		}
		return leader
	}, healing, 100*time.Millisecond).ShouldNot(BeEmpty(), "nobody leads")
	return leader
}

func (w *world) claim(pod string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: component.ClaimName(pod)}, claim))
	return claim
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(m.Run())
}
