// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/support/phase"
)

// TestTell checks which request a step sends, to which members, and its timeout.
func TestTell(t *testing.T) {
	full := &etcdserverpb.AlarmMember{MemberID: 2, Alarm: etcdserverpb.AlarmType_NOSPACE}
	for does, want := range map[action]struct {
		did    string
		within time.Duration
	}{
		remove: {"remove 2", 7 * time.Second}, add: {"add peer etcd-1", 7 * time.Second}, promote: {"promote 2", 7 * time.Second},
		defragment: {"defragment etcd-1", 5 * time.Minute}, compact: {"compact 7", 7 * time.Second}, disarm: {"disarm NOSPACE of 2", 7 * time.Second},
	} {
		t.Run("When the step is to "+string(does)+", it should send that request to the right members", func(t *testing.T) {
			g := NewWithT(t)
			c := newCast(t)
			next := step{action: does, member: c.seen.members[1], via: []string{"etcd-0", "etcd-2"}, alarm: full}
			g.Expect(c.r.take(t.Context(), c.hcp, next)).To(Succeed())
			g.Expect(c.did).To(Equal([]string{want.did}))
			g.Expect(c.dialed).To(Equal([]string{"etcd-0 etcd-2"}))
			g.Expect(c.within).To(Equal(want.within))
			g.Expect(c.open).To(BeZero(), "a client would stay")
			g.Expect(c.r.compacted == 7).To(Equal(does == compact))

			c.r.compacted = 0
			c.refuses[want.did] = errRefused
			g.Expect(c.r.take(t.Context(), c.hcp, next)).To(And(MatchError(errRefused), MatchError(ContainSubstring("etcd-1")), MatchError(ContainSubstring(string(does)))))
			g.Expect(c.r.compacted).To(BeZero(), "it is to be done again")
			c.refuses = map[string]error{"dial": errRefused}
			g.Expect(c.r.take(t.Context(), c.hcp, next)).To(MatchError(errRefused))
		})
	}
	t.Run("When the revision is already compacted, it should succeed", func(t *testing.T) {
		c := newCast(t)
		c.refuses["compact 7"] = rpctypes.ErrCompacted
		NewWithT(t).Expect(c.r.take(t.Context(), c.hcp, step{action: compact, member: c.seen.members[0]})).To(Succeed())
		NewWithT(t).Expect(c.r.compacted).To(BeEquivalentTo(7))
	})
}

// TestTakeOnServer runs the steps that need no call to etcd.
func TestTakeOnServer(t *testing.T) {
	member := func(c *cast) *member {
		m := c.seen.members[1]
		m.claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.ClaimName(m.pod)}}
		m.live = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: m.pod}}
		return m
	}
	left := func(c *cast) string {
		var names []string
		pods, claims := &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
		for _, list := range []client.ObjectList{pods, claims} {
			if err := c.server.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		for _, pod := range pods.Items {
			names = append(names, pod.Name)
		}
		for _, claim := range claims.Items {
			names = append(names, claim.Name)
		}
		return strings.Join(names, " ")
	}
	t.Run("When a member gets a new volume, it should delete only that member's claim and Pod", func(t *testing.T) {
		g := NewWithT(t)
		c := newCast(t)
		next := step{action: renew, member: member(c)}
		for range 2 { // An operator that stopped after the step repeats it.
			g.Expect(c.r.take(t.Context(), c.hcp, next)).To(Succeed())
			g.Expect(left(c)).To(Equal("etcd-0 etcd-2 data-etcd-0 data-etcd-2"))
		}
	})
	t.Run("When the claim cannot be deleted, it should keep the Pod", func(t *testing.T) {
		c := newCast(t)
		c.refuse("delete v1.PersistentVolumeClaim", errRefused)
		err := c.r.take(t.Context(), c.hcp, step{action: renew, member: member(c)})
		NewWithT(t).Expect(err).To(And(MatchError(errRefused), MatchError(ContainSubstring("data-etcd-1"))))
		NewWithT(t).Expect(left(c)).To(ContainSubstring("etcd-1 "))
	})
	for name, does := range map[string]action{"When a pod cannot be restarted, the step should fail": restart, "When its pod cannot get another volume, the step should fail": renew} {
		t.Run(name, func(t *testing.T) {
			c := newCast(t)
			c.refuse("delete v1.Pod ", errRefused)
			NewWithT(t).Expect(c.r.take(t.Context(), c.hcp, step{action: does, member: member(c)})).To(MatchError(errRefused))
		})
	}
	t.Run("When a note is written, it should keep the other notes and be owned by the control plane", func(t *testing.T) {
		for name, fresh := range map[string]bool{"beside others": false, "as the first": true} {
			g := NewWithT(t)
			c := newCast(t)
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.NotesConfigMap}}
			want := map[string]string{"etcd-0": "Started etcd-0", "etcd-1": "Joining", "etcd-2": "Started etcd-2"}
			if fresh {
				g.Expect(c.server.Delete(t.Context(), cm)).To(Succeed())
				want = map[string]string{"etcd-1": "Joining"}
			}
			g.Expect(c.r.take(t.Context(), c.hcp, step{action: note, member: member(c), note: component.Note{Stage: component.Joining}})).To(Succeed())
			g.Expect(c.server.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
			g.Expect(cm.Data).To(Equal(want), name)
			g.Expect(metav1.IsControlledBy(cm, c.hcp)).To(BeTrue())
		}
	})
	t.Run("When the notes ConfigMap has another owner, it should return an error", func(t *testing.T) {
		c := newCast(t)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.NotesConfigMap}}
		c.edit(cm, func() {
			cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "theirs", UID: "5678", Controller: ptr.To(true)}}
		})
		err := c.r.take(t.Context(), c.hcp, step{action: note, member: member(c), note: component.Note{Stage: component.Joining}})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("theirs")))
	})
	t.Run("When the note cannot be written, it should return the error", func(t *testing.T) {
		c := newCast(t)
		c.refuse("update v1.ConfigMap", errRefused)
		err := c.r.take(t.Context(), c.hcp, step{action: note, member: member(c), note: component.Note{Stage: component.Joining}})
		NewWithT(t).Expect(err).To(MatchError(errRefused))
	})
}

// TestLook checks what is observed of the members, and what cannot be observed.
func TestLook(t *testing.T) {
	t.Run("When all members are healthy, it should observe all of them", func(t *testing.T) {
		g := NewWithT(t)
		c := newCast(t)
		c.r.compacted = 5
		c.seen.strangers, c.seen.alarms = []*etcdserverpb.Member{{ID: 9, PeerURLs: []string{"elsewhere"}}}, corrupt(2)
		c.seen.members[2].status.Header.Revision = 6
		c.refuses["hash etcd-1 6"] = errRefused
		s, err := c.r.observe(t.Context(), c.hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.seen.revision).To(Equal("new"))
		g.Expect(c.r.disks).To(HaveLen(3))
		g.Expect(s.seen.compacted).To(BeEquivalentTo(5))
		g.Expect(s.seen.listed).To(BeTrue())
		g.Expect(s.seen.strangers).To(ConsistOf(HaveField("ID", BeEquivalentTo(9))))
		g.Expect(s.seen.alarms).To(Equal(c.seen.alarms))
		for i, m := range s.seen.members {
			g.Expect([]string{m.pod, m.clientURL, string(m.live.UID), string(m.claim.UID), m.note.Volume, m.listed.Name}).To(HaveEach(c.seen.members[i].pod))
			g.Expect(m.status).To(Equal(c.seen.members[i].status))
			g.Expect(m.hash != nil).To(Equal(i != 1), "one that does not tell agrees with nobody")
		}
		g.Expect(s.seen.claims()).To(HaveLen(3))
		g.Expect(c.dialed).To(Equal([]string{"etcd-0 etcd-1 etcd-2", "etcd-0 etcd-1 etcd-2"}))
		g.Expect(c.open).To(BeZero(), "a client would stay")
		slices.Sort(c.did)
		g.Expect(cmp.Diff([]string{"alarms", "hash etcd-0 6", "hash etcd-1 6", "hash etcd-2 6", "list", "status etcd-0", "status etcd-1", "status etcd-2"}, c.did)).To(BeEmpty())
		g.Expect(c.within).To(Equal(2 * time.Minute))
	})
	t.Run("When a member is down and one is a learner, it should list the members via the other one", func(t *testing.T) {
		g := NewWithT(t)
		c := newCast(t)
		c.seen.members[0].status, c.seen.members[1].status.IsLearner = nil, true
		c.seen.alarms = corrupt(2)
		seen, err := c.r.look(t.Context(), c.hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen.members[0].status).To(BeNil())
		g.Expect(c.dialed[1]).To(Equal("etcd-2"))
		g.Expect(c.did).To(ContainElement("hash etcd-2 7"))
		g.Expect(c.did).NotTo(ContainElement(ContainSubstring("hash etcd-1")))
	})
	t.Run("When no member serves, it should not list the members", func(t *testing.T) {
		g := NewWithT(t)
		c := newCast(t)
		silence(c.seen)
		seen, err := c.r.look(t.Context(), c.hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen.listed).To(BeFalse())
		g.Expect(c.dialed).To(HaveLen(1))
		g.Expect(c.within).To(Equal(7 * time.Second))
	})
	for _, what := range []string{"list", "alarms"} {
		t.Run("When members do not answer to "+what+", the cluster should count as not listed", func(t *testing.T) {
			c := newCast(t)
			c.refuses[what] = errRefused
			seen, err := c.r.look(t.Context(), c.hcp)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(seen.listed).To(BeFalse())
			NewWithT(t).Expect(seen.members[0].listed).To(BeNil())
			NewWithT(t).Expect(c.within).To(Equal(7 * time.Second))
		})
	}
	for _, what := range []string{"get v1.StatefulSet", "get v1.ConfigMap", "get v1.Pod clusters-demo/etcd-1", "get v1.PersistentVolumeClaim clusters-demo/data-etcd-1"} {
		t.Run("When the server refuses to "+what+", the reconcile should fail", func(t *testing.T) {
			c := newCast(t)
			c.refuse(what, errRefused)
			_, err := c.r.observe(t.Context(), c.hcp)
			NewWithT(t).Expect(err).To(MatchError(errRefused))
		})
	}
	t.Run("When members cannot be dialed, it should return the error", func(t *testing.T) {
		c := newCast(t)
		c.refuses["dial"] = errRefused
		_, err := c.r.observe(t.Context(), c.hcp)
		NewWithT(t).Expect(err).To(MatchError(errRefused))
		NewWithT(t).Expect(c.r.list(t.Context(), namespace, three())).To(MatchError(errRefused))
	})
	for name, left := range map[string]func(*cast){
		"When the control plane is being deleted, it should stop": func(c *cast) { c.hcp.DeletionTimestamp = &metav1.Time{Time: noon} },
		"When etcd is unmanaged, it should stop":                  func(c *cast) { c.hcp.Spec.Etcd.ManagementType = hyperv1.Unmanaged },
		"When there is no StatefulSet yet, it should stop": func(c *cast) {
			c.refuse("get v1.StatefulSet", apierrors.NewNotFound(corev1.Resource("statefulsets"), "etcd"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCast(t)
			left(c)
			_, err := c.r.observe(t.Context(), c.hcp)
			NewWithT(t).Expect(err).To(MatchError(phase.ErrStop))
		})
	}
}

// TestPassOverMembers runs a complete reconcile.
func TestPassOverMembers(t *testing.T) {
	pass := func(t *testing.T, c *cast) (time.Duration, string) {
		t.Helper()
		result, err := c.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c.hcp)})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		hcp := &hyperv1.HostedControlPlane{}
		NewWithT(t).Expect(c.server.Get(t.Context(), client.ObjectKeyFromObject(c.hcp), hcp)).To(Succeed())
		var says []string
		for _, condition := range hcp.Status.Conditions {
			says = append(says, condition.Type+" "+string(condition.Status)+"/"+condition.Reason)
			NewWithT(t).Expect(condition.ObservedGeneration).To(BeEquivalentTo(3))
		}
		slices.Sort(says)
		return result.RequeueAfter, strings.Join(says, ", ")
	}
	for name, tc := range map[string]struct {
		edit  func(*cast)
		did   string
		after time.Duration
		says  string
	}{
		"When all members are healthy, it should requeue after 30 seconds": {func(*cast) {}, "", 30 * time.Second, "EtcdMembersHealthy True/AsExpected"},
		"When a member has lost its data, it should remove the member and requeue soon": {func(c *cast) {
			c.seen.members[1].status = nil
			c.note("etcd-1", "Started former")
		}, "remove 2", 2 * time.Second, "EtcdMembersHealthy False/MemberReplaced, EtcdRecoveryActive True/MemberReplaced"},
		"When a member is fragmented, it should defragment the member": {func(c *cast) { c.seen.members[1].status.DbSizeInUse = 0 }, "defragment etcd-1", 2 * time.Second, "EtcdMembersHealthy True/AsExpected"},
		"When the control plane is paused, it should report the conditions and take no step": {func(c *cast) {
			c.seen.members[1].status.DbSizeInUse = 0
			c.pause("true")
		}, "", 0, "EtcdMembersHealthy True/AsExpected"},
		"When the pause has an end, it should requeue at the end": {func(c *cast) { c.pause(noon.Add(time.Minute).Format(time.RFC3339)) }, "", time.Minute, "EtcdMembersHealthy True/AsExpected"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCast(t)
			tc.edit(c)
			after, says := pass(t, c)
			did := slices.DeleteFunc(c.did, func(what string) bool { return what == "list" || what == "alarms" || strings.HasPrefix(what, "status") })
			if diff := cmp.Diff([]string{tc.did, tc.says}, []string{strings.Join(did, ","), says}); diff != "" || after != tc.after {
				t.Errorf("after %s: -want +got\n%s", after, diff)
			}
		})
	}
}

func TestPassFails(t *testing.T) {
	c := newCast(t)
	c.seen.members[1].status = nil
	c.note("etcd-1", "Started former")
	c.refuses["remove 2"] = errRefused
	_, err := c.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c.hcp)})
	NewWithT(t).Expect(err).To(MatchError(errRefused))
}

func TestPassOverVolumes(t *testing.T) {
	for paused, want := range map[string]string{"": "2Gi", "true": "1Gi"} {
		g := NewWithT(t)
		c := newCast(t)
		claim := claimOf("1Gi")
		claim.UID = "etcd-1"
		g.Expect(c.server.Delete(t.Context(), claim.DeepCopy())).To(Succeed())
		g.Expect(c.server.Create(t.Context(), claim)).To(Succeed())
		c.edit(c.hcp, func() {
			c.hcp.Spec.Etcd.Managed.Storage.PersistentVolume = &hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse("2Gi"))}
		})
		c.pause(paused)
		_, err := c.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c.hcp)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.server.Get(t.Context(), client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		g.Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal(want))
		s := &scope{hcp: c.hcp}
		state, err := c.r.pause(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect([]bool{s.paused, state.Paused}).To(HaveEach(paused != ""))
	}
}

// note sets the note of a member in the namespace.
func (c *cast) note(pod, text string) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.NotesConfigMap}}
	c.edit(cm, func() { cm.Data[pod] = text })
}

func (c *cast) pause(until string) {
	c.edit(c.hcp, func() { c.hcp.Spec.PausedUntil = &until })
}
