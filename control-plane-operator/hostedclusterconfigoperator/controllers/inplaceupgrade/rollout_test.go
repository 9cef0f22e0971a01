// SPDX-License-Identifier: Apache-2.0

package inplaceupgrade

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// newSet returns a MachineSet whose target is after.
func newSet(edits ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "pool", UID: "pool", Annotations: map[string]string{
		hyperv1.NodePoolTargetConfigVersionAnnotation: after, hyperv1.NodePoolCurrentConfigVersionAnnotation: before,
		hyperv1.NodePoolKubeletVersionAnnotation: afterKubelet[1:]}}}
	set.Spec.Template.Spec.Version = "1.36.4"
	for _, edit := range edits {
		edit(set)
	}
	return set
}

func TestLimit(t *testing.T) {
	for text, want := range map[string]int{"": 1, "some": 1, "0": 1, "-3": 1, "1": 1, "2": 2, "30": 30, "50%": 1, "1.5": 1} {
		set := newSet(func(ms *clusterv1.MachineSet) { ms.Annotations[hyperv1.NodePoolMaxUnavailableAnnotation] = text })
		if got := newRollout(set).limit; got != want {
			t.Errorf("with %q the limit is %d and not %d", text, got, want)
		}
	}
	ro := newRollout(newSet())
	if ro.limit != 1 {
		t.Errorf("where nobody says how many nodes may be out of service it is %d", ro.limit)
	}
	if want := (aim{config: after, kubelet: "1.36.4"}); ro.aim != want {
		t.Errorf("the nodes are to come to %v and not to %v", ro.aim, want)
	}
}

func TestHasTarget(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*clusterv1.MachineSet)
		want bool
	}{
		"has a new target":                      {func(*clusterv1.MachineSet) {}, true},
		"has a target and no current version":   {func(ms *clusterv1.MachineSet) { delete(ms.Annotations, hyperv1.NodePoolCurrentConfigVersionAnnotation) }, true},
		"has reached its target":                {func(ms *clusterv1.MachineSet) { ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] = after }, false},
		"has no target":                         {func(ms *clusterv1.MachineSet) { ms.Annotations = nil }, false},
		"has a new target and is being deleted": {func(ms *clusterv1.MachineSet) { ms.DeletionTimestamp = &metav1.Time{Time: noon} }, false},
	} {
		t.Run("When a set "+name+" it should report whether nodes need an update", func(t *testing.T) {
			NewWithT(t).Expect(hasTarget(newSet(tc.edit))).To(Equal(tc.want))
		})
	}
}

// at sets a member's stage directly.
func at(s stage, why string) func(*member) {
	return func(m *member) { m.stage, m.why = s, why }
}

// TestRoom checks that no more nodes are out of service at once than the pool allows, for whatever reason.
func TestRoom(t *testing.T) {
	begun := marked(stepAsk, after, time.Minute)
	for name, tc := range map[string]struct {
		members []*member
		want    int
	}{
		"is none":            {nil, 3},
		"waits and is Ready": {[]*member{newMember("a", at(waits, ""))}, 3},
		// This node is updated before all others, and counts against the limit from then on.
		"waits and is not Ready":            {[]*member{newMember("a", at(waits, ""), notReady)}, 3},
		"is drained":                        {[]*member{newMember("a", at(drains, ""), begun)}, 2},
		"works":                             {[]*member{newMember("a", at(works, ""), begun)}, 2},
		"failed":                            {[]*member{newMember("a", at(failed, ""), begun)}, 2},
		"has started for a previous target": {[]*member{newMember("a", at(waits, ""), marked(stepDrain, former, 0))}, 2},
		"is gone":                           {[]*member{newMember("a", at(absent, ""))}, 2},
		"is gone and has started":           {[]*member{newMember("a", at(absent, ""), begun)}, 2},
		"has arrived and is Ready":          {[]*member{newMember("a", at(arrived, ""), begun)}, 3},
		"was installed with it and is down": {[]*member{newMember("a", at(arrived, ""), notReady)}, 2},
		"has arrived, is down and marked":   {[]*member{newMember("a", at(arrived, ""), notReady, begun)}, 2},
		"works, of four":                    {[]*member{newMember("a", at(works, ""), begun), newMember("b", at(absent, "")), newMember("c", at(works, ""), begun), newMember("d", at(drains, ""), begun)}, -1},
	} {
		t.Run("When a node "+name+" it should return the remaining room", func(t *testing.T) {
			NewWithT(t).Expect((&rollout{limit: 3, members: tc.members}).room()).To(Equal(tc.want))
		})
	}
}

func TestOrder(t *testing.T) {
	ro := &rollout{members: []*member{newMember("b"), newMember("d", notReady), newMember("a"), newMember("c", func(m *member) { m.node = nil }),
		newMember("e", func(m *member) { m.node.Status.Conditions = nil })}}
	ro.sort()
	var names []string
	for _, m := range ro.members {
		names = append(names, m.machine.Name)
	}
	if diff := cmp.Diff([]string{"c", "d", "e", "a", "b"}, names); diff != "" {
		t.Errorf("nodes that serve nobody come first, then names decide (-want +got):\n%s", diff)
	}
}

func TestProgress(t *testing.T) {
	several := func(n int) (members []*member) {
		for _, name := range []string{"a", "b", "c", "d", "e"}[:n] {
			members = append(members, newMember(name, at(works, name+" works")))
		}
		return members
	}
	for name, tc := range map[string]struct {
		members []*member
		want    string
	}{
		"no node exists":                          {nil, "0 of 0 nodes are updated"},
		"no update is in progress":                {[]*member{newMember("a", at(arrived, "x")), newMember("b", at(waits, "y"))}, "1 of 2 nodes are updated"},
		"one update is in progress":               {several(1), "0 of 1 nodes are updated. a works"},
		"three updates are running":               {several(3), "0 of 3 nodes are updated. a works; b works; c works"},
		"four updates are running":                {several(4), "0 of 4 nodes are updated. a works; b works; c works; and 1 more"},
		"five updates are running":                {several(5), "0 of 5 nodes are updated. a works; b works; c works; and 2 more"},
		"one node is gone and one is draining":    {[]*member{newMember("a", at(absent, "a is gone")), newMember("b", at(drains, "b is drained"))}, "0 of 2 nodes are updated. a is gone; b is drained"},
		"one failed, which another field reports": {[]*member{newMember("a", at(failed, "a failed"))}, "0 of 1 nodes are updated"},
	} {
		t.Run("When "+name+" it should return the progress", func(t *testing.T) {
			NewWithT(t).Expect((&rollout{members: tc.members}).progress()).To(Equal(tc.want))
		})
	}
}

func TestMark(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want mark
	}{
		"nothing":            {"", mark{}},
		"a valid mark":       {"ask bbbb2222 2026-11-20T12:00:00Z", mark{step: stepAsk, config: after, since: noon}},
		"more white space":   {"  ask\tbbbb2222  2026-11-20T12:00:00Z\n", mark{step: stepAsk, config: after, since: noon}},
		"one field too few":  {"ask 2026-11-20T12:00:00Z", mark{}},
		"one field too many": {"ask bbbb2222 2026-11-20T12:00:00Z now", mark{}},
		"an invalid time":    {"ask bbbb2222 noon", mark{}},
	} {
		t.Run("When a Machine is marked with "+name+" it should return the mark or none", func(t *testing.T) {
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{markAnnotation: tc.text}}}
			got := readMark(machine)
			NewWithT(t).Expect(got.step + got.config).To(Equal(tc.want.step + tc.want.config))
			NewWithT(t).Expect(got.since.Equal(tc.want.since)).To(BeTrue())
		})
	}
	t.Run("When a mark is written, it should be read back unchanged, in any time zone", func(t *testing.T) {
		written := mark{step: stepDrain, config: after, since: noon.In(time.FixedZone("somewhere", 5*3600))}
		read := readMark(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{markAnnotation: written.String()}}})
		g := NewWithT(t)
		g.Expect(read.since.Equal(noon)).To(BeTrue())
		g.Expect(written.String()).To(HaveSuffix(" 2026-11-20T12:00:00Z"))
	})
}
