// SPDX-License-Identifier: Apache-2.0

package inplaceupgrade

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

var errRefused = errors.New("refused")

// bench is a reconciler with two fake clusters, and records the order of its writes.
type bench struct {
	*GomegaWithT
	t *testing.T
	*Reconciler
	writes []string
	// refuse is the kind of object whose writes fail.
	refuse string
}

func newBench(t *testing.T, members []*member, pods ...client.Object) *bench {
	t.Helper()
	b := &bench{GomegaWithT: NewWithT(t), t: t}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	write := func(kind, name string) error {
		b.writes = append(b.writes, kind+" "+name)
		if b.refuse == kind {
			return errRefused
		}
		return nil
	}
	funcs := interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			kind := map[bool]string{true: "Node", false: "Machine"}[obj.GetNamespace() == ""]
			if err := write(kind, obj.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, obj, content client.Object, opts ...client.SubResourceCreateOption) error {
			if err := write(sub, obj.GetName()); err != nil {
				return err
			}
			return c.SubResource(sub).Create(ctx, obj, content, opts...)
		},
	}
	// The test applies no objects, so it does not need the schema of all kinds.
	builder := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(managedfields.NewDeducedTypeConverter())
	}
	guest := builder().WithObjects(pods...).WithInterceptorFuncs(funcs).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(obj client.Object) []string { return []string{obj.(*corev1.Pod).Spec.NodeName} })
	management := builder().WithInterceptorFuncs(funcs)
	for _, m := range members {
		if m.mark != (mark{}) {
			annotate(m.machine, markAnnotation, m.mark.String())
		}
		guest.WithObjects(m.node)
		management.WithObjects(m.machine)
	}
	g := guest.Build()
	b.Reconciler = &Reconciler{Guest: g, GuestLive: g, Management: management.Build(), Namespace: "clusters-demo", Clock: clocktesting.NewFakePassiveClock(noon)}
	return b
}

// node and machine return the stored objects of a member.
func (b *bench) node(name string) *corev1.Node {
	b.t.Helper()
	node := &corev1.Node{}
	b.Expect(b.Guest.Get(b.t.Context(), client.ObjectKey{Name: name}, node)).To(Succeed())
	return node
}

func (b *bench) machine(name string) *clusterv1.Machine {
	b.t.Helper()
	machine := &clusterv1.Machine{}
	b.Expect(b.Management.Get(b.t.Context(), client.ObjectKey{Namespace: "clusters-demo", Name: name}, machine)).To(Succeed())
	return machine
}

func (b *bench) marked(name string) mark {
	b.t.Helper()
	return readMark(b.machine(name))
}

func cordoned(m *member) {
	m.node.Spec.Unschedulable = true
	m.node.Annotations[hyperv1.NodeUpdateCordonedAnnotation] = former
}

func podOn(node, name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, UID: "uid"}, Spec: corev1.PodSpec{NodeName: node}}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func TestStart(t *testing.T) {
	t.Run("When an update starts, it should mark the Machine, cordon the node, drain it and request the update in order", func(t *testing.T) {
		m := newMember("a", at(waits, ""), says(hyperv1.NodeConfigFailed, "of the time before"))
		b := newBench(t, []*member{m}, podOn("a", "app"), podOn("b", "other"))
		b.Expect(b.start(t.Context(), newRollout(newSet()), m)).To(Succeed())
		b.Expect(b.writes).To(Equal([]string{"Machine a", "Node a", "eviction app"}))
		b.Expect(b.marked("a").step).To(Equal(stepDrain))
		b.Expect(b.marked("a").config).To(Equal(after))
		b.Expect(b.node("a").Spec.Unschedulable).To(BeTrue())
		b.Expect(b.node("a").Annotations).To(HaveKeyWithValue(hyperv1.NodeUpdateCordonedAnnotation, after))
		b.Expect(b.node("a").Annotations).NotTo(HaveKey(hyperv1.DesiredNodeConfigAnnotation), "its pods are there yet")
		b.Expect(m.stage).To(Equal(drains))
		b.Expect(m.why).To(Equal("Node a is being drained: waiting for Pod default/app"))

		b.writes = nil
		b.Expect(b.empty(t.Context(), newRollout(newSet()), m)).To(Succeed())
		b.Expect(b.writes).To(Equal([]string{"Machine a", "Node a"}))
		b.Expect(b.marked("a").step).To(Equal(stepAsk))
		b.Expect(b.node("a").Annotations).To(And(HaveKeyWithValue(hyperv1.DesiredNodeConfigAnnotation, after),
			Not(HaveKey(hyperv1.NodeConfigStateAnnotation)), Not(HaveKey(hyperv1.NodeConfigMessageAnnotation))), "what it said of a request before is over")
		b.Expect(m.stage).To(Equal(works))

		b.writes = nil
		b.Expect(b.ask(t.Context(), newRollout(newSet()), m)).To(Succeed())
		b.Expect(b.writes).To(BeEmpty(), "it is asked once")
	})

	t.Run("When a node runs the target but requests another, it should request again without a drain", func(t *testing.T) {
		m := newMember("a", at(waits, ""), runs(after, afterKubelet), wants(former))
		b := newBench(t, []*member{m}, podOn("a", "app"))
		b.Expect(b.start(t.Context(), newRollout(newSet()), m)).To(Succeed())
		b.Expect(b.writes).To(Equal([]string{"Machine a", "Node a"}))
		b.Expect(b.node("a").Spec.Unschedulable).To(BeFalse())
		b.Expect(b.node("a").Annotations).To(HaveKeyWithValue(hyperv1.DesiredNodeConfigAnnotation, after))
		b.Expect(b.marked("a").step).To(Equal(stepAsk))
		b.Expect(m.why).To(Equal("Node a already runs the desired configuration"))
	})

	t.Run("When the mark cannot be written, it should not change the node", func(t *testing.T) {
		m := newMember("a", at(waits, ""))
		b := newBench(t, []*member{m}, podOn("a", "app"))
		b.refuse = "Machine"
		b.Expect(b.start(t.Context(), newRollout(newSet()), m)).To(MatchError(errRefused))
		b.Expect(b.writes).To(Equal([]string{"Machine a"}))
	})

	t.Run("When a node cannot be cordoned, it should neither drain it nor request the update", func(t *testing.T) {
		m := newMember("a", at(waits, ""))
		b := newBench(t, []*member{m}, podOn("a", "app"))
		b.refuse = "Node"
		b.Expect(b.start(t.Context(), newRollout(newSet()), m)).To(MatchError(errRefused))
		b.Expect(b.writes).To(Equal([]string{"Machine a", "Node a"}))
	})

	t.Run("When another user has cordoned a node, it should keep the node cordoned", func(t *testing.T) {
		m := newMember("a", at(waits, ""), func(m *member) { m.node.Spec.Unschedulable = true })
		b := newBench(t, []*member{m})
		b.Expect(b.cordon(t.Context(), newRollout(newSet()), m)).To(Succeed())
		b.Expect(b.uncordon(t.Context(), m)).To(Succeed())
		b.Expect(b.writes).To(BeEmpty())
		b.Expect(b.node("a").Spec.Unschedulable).To(BeTrue())
	})
}

// TestDrainTimeout checks when the pool's drain timeout expires. Without a timeout, or with zero, it never does.
func TestDrainTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		limit *int32
		ago   time.Duration
		asked bool
	}{
		"not set":                {nil, 100 * time.Hour, false},
		"zero":                   {ptr.To[int32](0), 100 * time.Hour, false},
		"negative":               {ptr.To[int32](-1), 100 * time.Hour, false},
		"a second from expiry":   {ptr.To[int32](600), 599 * time.Second, false},
		"expired at this second": {ptr.To[int32](600), 600 * time.Second, true},
	} {
		t.Run("When the time for a drain is "+name+" it should wait or update the node with its pods", func(t *testing.T) {
			m := newMember("a", at(drains, ""), marked(stepDrain, after, tc.ago), cordoned)
			b := newBench(t, []*member{m}, podOn("a", "app"))
			ro := newRollout(newSet(func(ms *clusterv1.MachineSet) { ms.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = tc.limit }))
			b.Expect(b.empty(t.Context(), ro, m)).To(Succeed())
			b.Expect(b.node("a").Annotations[hyperv1.DesiredNodeConfigAnnotation] == after).To(Equal(tc.asked))
			b.Expect(m.stage == works).To(Equal(tc.asked))
		})
	}
}

func TestMarkKeepsItsTime(t *testing.T) {
	m := newMember("a", marked(stepAsk, after, 30*time.Minute))
	b := newBench(t, []*member{m})
	b.Expect(b.mark(t.Context(), m, stepAsk, after)).To(Succeed())
	b.Expect(b.writes).To(BeEmpty())
	b.Expect(b.marked("a").since.Equal(noon.Add(-30*time.Minute))).To(BeTrue(), "the time of a step is that of its beginning")
	b.Expect(b.mark(t.Context(), m, stepFail, after)).To(Succeed())
	b.Expect(b.marked("a").since.Equal(noon)).To(BeTrue())
	b.Expect(b.mark(t.Context(), m, stepFail, former)).To(Succeed())
	b.Expect(b.marked("a").config).To(Equal(former))
}

// TestEnd checks what is reverted when a node has reached the target, or does not reach it.
func TestEnd(t *testing.T) {
	ask := marked(stepAsk, after, time.Hour)
	t.Run("When a node runs the target, it should be uncordoned before its mark is removed and its release recorded", func(t *testing.T) {
		m := newMember("a", at(arrived, ""), ask, cordoned, runs(after, afterKubelet))
		b := newBench(t, []*member{m})
		b.Expect(b.finish(t.Context(), newRollout(newSet()), m)).To(Succeed())
		b.Expect(b.writes).To(Equal([]string{"Node a", "Machine a", "Machine a"}))
		b.Expect(b.node("a").Spec.Unschedulable).To(BeFalse())
		b.Expect(b.node("a").Annotations).NotTo(HaveKey(hyperv1.NodeUpdateCordonedAnnotation))
		b.Expect(b.machine("a").Annotations).To(Equal(map[string]string{hyperv1.NodePoolReleaseVersionAnnotation: "1.36.4"}))
		b.Expect(m.mark).To(Equal(mark{}))

		b.writes = nil
		b.Expect(b.finish(t.Context(), newRollout(newSet()), m)).To(Succeed())
		b.Expect(b.writes).To(BeEmpty())
	})

	t.Run("When an updated node cannot be uncordoned, its mark should stay", func(t *testing.T) {
		m := newMember("a", at(arrived, ""), ask, cordoned, runs(after, afterKubelet))
		b := newBench(t, []*member{m})
		b.refuse = "Node"
		b.Expect(b.finish(t.Context(), newRollout(newSet()), m)).To(MatchError(errRefused))
		b.Expect(b.marked("a").step).To(Equal(stepAsk))
	})

	t.Run("When a node has the update's cordon but no mark, it should be uncordoned", func(t *testing.T) {
		m := newMember("a", at(arrived, ""), cordoned, runs(after, afterKubelet))
		b := newBench(t, []*member{m})
		b.Expect(b.finish(t.Context(), newRollout(newSet()), m)).To(Succeed())
		b.Expect(b.node("a").Spec.Unschedulable).To(BeFalse())
	})

	for name, tc := range map[string]struct {
		edits  []func(*member)
		step   string
		serves bool
	}{
		"rolled back":                          {[]func(*member){ask, says(hyperv1.NodeConfigRolledBack, "")}, stepFail, true},
		"rolled back and is not Ready":         {[]func(*member){ask, says(hyperv1.NodeConfigRolledBack, ""), notReady}, stepFail, false},
		"failed and retries":                   {[]func(*member){ask, says(hyperv1.NodeConfigFailed, "")}, stepAsk, false},
		"does not answer":                      {[]func(*member){ask}, stepAsk, false},
		"works for too long":                   {[]func(*member){ask, says(hyperv1.NodeConfigWorking, "")}, stepAsk, false},
		"reports a rollback but never started": {[]func(*member){says(hyperv1.NodeConfigRolledBack, "")}, "", false},
	} {
		t.Run("When a node "+name+" it should uncordon only a Ready node that rolled back", func(t *testing.T) {
			m := newMember("a", append(tc.edits, at(failed, ""), cordoned)...)
			b := newBench(t, []*member{m})
			b.Expect(b.giveUp(t.Context(), newRollout(newSet()), m)).To(Succeed())
			b.Expect(b.marked("a").step).To(Equal(tc.step))
			b.Expect(b.node("a").Spec.Unschedulable).To(Equal(!tc.serves))
		})
	}

	t.Run("When an update fails, it should record the failure before it uncordons the node", func(t *testing.T) {
		m := newMember("a", ask, says(hyperv1.NodeConfigRolledBack, ""), at(failed, ""), cordoned)
		b := newBench(t, []*member{m})
		b.refuse = "Machine"
		b.Expect(b.giveUp(t.Context(), newRollout(newSet()), m)).To(MatchError(errRefused))
		b.Expect(b.node("a").Spec.Unschedulable).To(BeTrue())
	})
}

// TestStop checks a rollout in which one node has failed. Nodes that are only being drained are uncordoned, nodes whose
// node-agent has a request continue, and no other node starts.
func TestStop(t *testing.T) {
	bad := newMember("bad", at(failed, "bad went back"), marked(stepFail, after, time.Hour), says(hyperv1.NodeConfigRolledBack, ""))
	draining := newMember("draining", at(drains, ""), marked(stepDrain, after, time.Minute), cordoned)
	asked := newMember("asked", at(works, ""), marked(stepAsk, after, time.Minute), cordoned)
	old := newMember("old", at(waits, ""), marked(stepDrain, former, time.Minute), cordoned)
	next := newMember("next", at(waits, ""))
	b := newBench(t, []*member{bad, draining, asked, old, next}, podOn("draining", "app"), podOn("next", "app-2"))
	ro := newRollout(newSet())
	ro.limit, ro.members = 9, []*member{bad, draining, asked, old, next}
	_, err := b.advance(t.Context(), ro)
	b.Expect(err).NotTo(HaveOccurred())
	_, err = b.begin(t.Context(), ro)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.node("draining").Spec.Unschedulable).To(BeFalse())
	b.Expect(b.machine("draining").Annotations).NotTo(HaveKey(markAnnotation))
	b.Expect(draining.stage).To(Equal(waits))
	b.Expect(b.node("asked").Annotations).To(HaveKeyWithValue(hyperv1.DesiredNodeConfigAnnotation, after), "whoever died before it was asked")
	b.Expect(b.marked("old").config).To(Equal(former))
	b.Expect(b.writes).NotTo(ContainElement(HaveSuffix(" next")))
	b.Expect(b.writes).NotTo(ContainElement(HavePrefix("eviction")))
}

// TestOneFails checks that an error for one node is reported and does not block the others.
func TestOneFails(t *testing.T) {
	first, second := newMember("first", at(waits, "")), newMember("second", at(waits, ""))
	b := newBench(t, []*member{second})
	ro := newRollout(newSet())
	ro.limit, ro.members = 2, []*member{first, second}
	_, err := b.begin(t.Context(), ro)
	b.Expect(err).To(MatchError(ContainSubstring("first")), "its Machine went a moment ago")
	b.Expect(b.marked("second").step).To(Equal(stepAsk))
}

func TestBeginCountsRoom(t *testing.T) {
	members := []*member{newMember("a", at(waits, "")), newMember("b", at(waits, "")), newMember("c", at(waits, ""))}
	b := newBench(t, members)
	ro := newRollout(newSet())
	ro.limit, ro.members = 2, members
	_, err := b.advance(t.Context(), ro)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.writes).To(BeEmpty(), "none is begun yet")
	_, err = b.begin(t.Context(), ro)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect([]string{b.marked("a").step, b.marked("b").step, b.marked("c").step}).To(Equal([]string{stepAsk, stepAsk, ""}))
}
