// SPDX-License-Identifier: Apache-2.0

package inplaceupgrade

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// noon is the time of the evaluation.
var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// former is a configuration that was desired before the update from before to after.
const former = "cccc3333"

// newMember returns a Machine whose Ready node runs before, and whose update has not started.
func newMember(name string, edits ...func(*member)) *member {
	m := &member{
		machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name}},
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-24 * time.Hour)),
			Annotations: map[string]string{hyperv1.CurrentNodeConfigAnnotation: before}},
			Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: beforeKubelet},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}},
	}
	m.machine.Status.NodeRef.Name = name
	for _, edit := range edits {
		edit(m)
	}
	return m
}

func runs(config, kubelet string) func(*member) {
	return func(m *member) {
		m.node.Annotations[hyperv1.CurrentNodeConfigAnnotation] = config
		m.node.Status.NodeInfo.KubeletVersion = kubelet
	}
}

func marked(step, config string, ago time.Duration) func(*member) {
	return func(m *member) { m.mark = mark{step: step, config: config, since: noon.Add(-ago)} }
}

func notReady(m *member) {
	m.node.Status.Conditions[1].Status = corev1.ConditionUnknown
}

func says(state, message string) func(*member) {
	return func(m *member) {
		m.node.Annotations[hyperv1.NodeConfigStateAnnotation], m.node.Annotations[hyperv1.NodeConfigMessageAnnotation] = state, message
	}
}

func wants(config string) func(*member) {
	return func(m *member) { m.node.Annotations[hyperv1.DesiredNodeConfigAnnotation] = config }
}

func mute(age time.Duration) func(*member) {
	return func(m *member) {
		m.node.Annotations = nil
		m.node.CreationTimestamp = metav1.NewTime(noon.Add(-age))
	}
}

type evaluation struct {
	name  string
	edits []func(*member)
	stage stage
	why   string
}

func (j evaluation) check(t *testing.T) {
	t.Helper()
	g, m := NewWithT(t), newMember("worker-1", j.edits...)
	m.evaluate(aim{config: after, kubelet: afterKubelet[1:]}, noon)
	g.Expect(m.stage).To(Equal(j.stage))
	if j.why == "" {
		g.Expect(m.why).To(BeEmpty())
		return
	}
	g.Expect(m.why).To(ContainSubstring(j.why))
	g.Expect(m.why).NotTo(HaveSuffix("."), "sentences are joined")
}

// TestJudgeProgress follows a node that updates as requested, up to the last moment of each timeout.
func TestJudgeProgress(t *testing.T) {
	const second = time.Second
	for _, tc := range []evaluation{
		{"has not started", nil, waits, ""},
		{"is being drained for hours", []func(*member){marked(stepDrain, after, 100*time.Hour)}, drains, ""},
		{"was drained for another target", []func(*member){marked(stepDrain, former, time.Hour)}, waits, ""},
		{"was asked", []func(*member){marked(stepAsk, after, second), wants(after)}, works, "is applying the configuration"},
		{"was asked and the answer is just due", []func(*member){marked(stepAsk, after, answerTime)}, works, "is applying the configuration"},
		{"was asked and the answer is overdue", []func(*member){marked(stepAsk, after, answerTime+second)}, failed, "has not answered for more than 10m0s"},
		{"applies the target until the deadline", []func(*member){marked(stepAsk, after, workTime), says(hyperv1.NodeConfigWorking, "")}, works, "is applying the configuration"},
		{"applies the target beyond the deadline", []func(*member){marked(stepAsk, after, workTime+second), says(hyperv1.NodeConfigWorking, "")}, failed, "has been applying the configuration for more than 45m0s"},
		{"applies another target", []func(*member){marked(stepAsk, former, workTime-second), says(hyperv1.NodeConfigWorking, "")}, works, "still applying the previous configuration"},
		{"applies another target for too long", []func(*member){marked(stepAsk, former, workTime), says(hyperv1.NodeConfigWorking, "")}, waits, ""},
		{"reports that it works but was never asked", []func(*member){says(hyperv1.NodeConfigWorking, "")}, waits, ""},
		{"runs the target", []func(*member){marked(stepAsk, after, 100*time.Hour), runs(after, afterKubelet), wants(after)}, arrived, ""},
		{"runs the target with a build of the kubelet's version", []func(*member){marked(stepAsk, after, second), runs(after, afterKubelet+"+a1b2c3")}, arrived, ""},
		{"runs the target and still works", []func(*member){marked(stepAsk, after, second), runs(after, afterKubelet), says(hyperv1.NodeConfigWorking, "")}, works, "is applying the configuration"},
		{"runs the target and is asked for another", []func(*member){runs(after, afterKubelet), wants(former)}, waits, ""},
		{"runs the target and is not Ready", []func(*member){marked(stepAsk, after, workTime), runs(after, afterKubelet), notReady}, works, "has the configuration and is not Ready"},
		{"runs the target and is not Ready for too long", []func(*member){marked(stepAsk, after, workTime+second), runs(after, afterKubelet), notReady}, failed, "is not Ready"},
		{"runs the target with the old kubelet", []func(*member){marked(stepAsk, after, workTime), runs(after, beforeKubelet)}, works, "runs kubelet v1.36.3 instead of v1.36.4"},
		{"runs the target with the old kubelet for too long", []func(*member){marked(stepAsk, after, workTime+second), runs(after, beforeKubelet)}, failed, "runs kubelet v1.36.3"},
		{"was installed with the target and is not Ready", []func(*member){runs(after, "v1.20.0"), notReady}, arrived, ""},
	} {
		t.Run("When a node "+tc.name+" it should have the expected stage and message", tc.check)
	}
}

// TestJudgeTrouble covers nodes that do not update as requested, or report false values.
func TestJudgeTrouble(t *testing.T) {
	const second = time.Second
	for _, tc := range []evaluation{
		{"rolled back", []func(*member){marked(stepAsk, after, second), wants(after), says(hyperv1.NodeConfigRolledBack, "no kubelet.")}, failed, "Node worker-1 rolled back: no kubelet"},
		{"rolled back and is marked as failed", []func(*member){marked(stepFail, after, time.Hour), wants(after), says(hyperv1.NodeConfigRolledBack, "no kubelet")}, failed, "rolled back"},
		{"rolled back and is no longer asked", []func(*member){marked(stepFail, after, time.Hour), says(hyperv1.NodeConfigRolledBack, "no kubelet")}, waits, ""},
		{"rolled back from another target", []func(*member){marked(stepFail, former, time.Hour), wants(former), says(hyperv1.NodeConfigRolledBack, "")}, waits, ""},
		{"reports a rollback but was never asked", []func(*member){wants(after), says(hyperv1.NodeConfigRolledBack, "")}, waits, ""},
		{"reports both the target and a rollback", []func(*member){marked(stepAsk, after, second), wants(after), runs(after, afterKubelet), says(hyperv1.NodeConfigRolledBack, "x")},
			failed, "rolled back: x"},
		{"failed and may retry", []func(*member){marked(stepAsk, after, answerTime-second), wants(after), says(hyperv1.NodeConfigFailed, "no image")}, works, "Node worker-1 failed: no image"},
		{"failed for too long", []func(*member){marked(stepAsk, after, answerTime), wants(after), says(hyperv1.NodeConfigFailed, "no image")}, failed, "failed: no image"},
		{"is drained and still reports an earlier failure", []func(*member){marked(stepDrain, after, second), wants(former), says(hyperv1.NodeConfigFailed, "no image")}, drains, ""},
		{"is new and has reported nothing", []func(*member){mute(answerTime - second)}, works, "has not reported yet which configuration it runs"},
		{"has never reported its configuration", []func(*member){mute(answerTime)}, failed, "delete Machine worker-1 to have it reinstalled"},
		{"has started and reports nothing any more", []func(*member){mute(time.Hour), marked(stepDrain, former, second)}, waits, ""},
		{"does not exist", []func(*member){func(m *member) { m.node = nil }}, absent, "Node worker-1 of Machine worker-1 is gone"},
		{"does not exist but has started", []func(*member){func(m *member) { m.node = nil }, marked(stepAsk, after, 100*time.Hour)}, absent, "is gone"},
		{"is named by two Machines", []func(*member){func(m *member) { m.node, m.disputed = nil, true }}, absent, "Machine worker-1 and another one both have Node worker-1"},
	} {
		t.Run("When a node "+tc.name+" it should have the expected stage and message", tc.check)
	}
}

func TestNoKubeletVersionWanted(t *testing.T) {
	g, m := NewWithT(t), newMember("worker-1", marked(stepAsk, after, time.Minute), runs(after, "what the node says"))
	m.evaluate(aim{config: after}, noon)
	g.Expect(m.stage).To(Equal(arrived), "an operator that does not say which kubelet goes with a configuration asks for none")
}

func TestSameVersion(t *testing.T) {
	for _, tc := range []struct {
		kubelet, wanted string
		same            bool
	}{
		{"v1.36.4", "1.36.4", true},
		{"v1.36.4+k3s1", "1.36.4", true},
		{"v1.36.4-rc.1", "1.36.4", true},
		{"v1.36.3", "1.36.4", false},
		{"v1.35.4", "1.36.4", false},
		{"v2.36.4", "1.36.4", false},
		{"", "1.36.4", false},
		{"none of your business", "1.36.4", false},
		{"v1.36.4", "latest", false},
		{"none of your business", "0.0.0", false},
		{"v0.0.0", "latest", false},
		{"no version", "no version", false},
		{"", "", true},
	} {
		if got := sameVersion(tc.kubelet, tc.wanted); got != tc.same {
			t.Errorf("sameVersion(%q, %q) is %t", tc.kubelet, tc.wanted, got)
		}
	}
}

// TestExcuse checks how a node's message is repeated. Any user with access to the machine may have written it.
func TestExcuse(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"nothing":                   {"", "Node worker-1 failed: its node-agent does not report why"},
		"only white space":          {" \n\t\x00 ", "Node worker-1 failed: its node-agent does not report why"},
		"a sentence":                {"The image is not there.", "Node worker-1 failed: The image is not there"},
		"lines, and terminal bells": {"one\r\n\ttwo\x07\x1b\x7fthree", "Node worker-1 failed: one two three"},
	} {
		t.Run("When a failed node reports "+name+" it should return one line", func(t *testing.T) {
			NewWithT(t).Expect(newMember("worker-1", says(hyperv1.NodeConfigFailed, tc.message)).excuse()).To(Equal(tc.want))
		})
	}
	t.Run("When a node's message is too long, it should truncate it between characters", func(t *testing.T) {
		g := NewWithT(t)
		text := newMember("worker-1", says(hyperv1.NodeConfigRolledBack, "x"+strings.Repeat("ä", maxSentence))).excuse()
		g.Expect(len(text)).To(BeNumerically("<=", maxSentence+len("Node worker-1 rolled back: ")))
		g.Expect(text).To(HavePrefix("Node worker-1 rolled back: xää"))
		g.Expect(utf8.ValidString(text)).To(BeTrue())
	})
}
