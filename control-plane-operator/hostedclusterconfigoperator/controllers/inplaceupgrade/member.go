// SPDX-License-Identifier: Apache-2.0

package inplaceupgrade

import (
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

const (
	// answerTime is how long a node-agent may take to begin with what it was asked, and a new node to say what it runs.
	answerTime = 10 * time.Minute
	// workTime is how long it may take: an image of the payload over a slow line, a restart of the machine, and the way back.
	workTime = 45 * time.Minute
	// maxSentence is how much of what a node says is repeated, in bytes.
	maxSentence = 400
)

// stage is how far a node is on its way to the target.
type stage string

const (
	// waits has its turn yet to come.
	waits stage = "waits"
	// drains is being emptied.
	drains stage = "drains"
	// works was asked to take the target.
	works stage = "works"
	// arrived runs the target.
	arrived stage = "arrived"
	// failed does not come to the target by itself.
	failed stage = "failed"
	// absent is a Machine whose Node is not there, or cannot be told from another's.
	absent stage = "absent"
)

// aim is what the nodes of a MachineSet are to come to.
type aim struct {
	// config is the hash of the configuration.
	config string
	// kubelet is the version that goes with it, without a leading v; empty where the operator did not say.
	kubelet string
}

// member is a Machine of the set with its node.
type member struct {
	machine *clusterv1.Machine
	// node is nil where there is none.
	node *corev1.Node
	// mark is what this controller has begun with the Machine.
	mark mark
	// disputed tells that another Machine names the same Node.
	disputed bool

	// stage and why, a sentence without the full stop, are what came of it.
	stage stage
	why   string
}

// evaluate says how far the member is. It trusts its own marks and the times of the API server; what the node says decides about the node alone.
func (m *member) evaluate(to aim, now time.Time) {
	if m.node == nil {
		m.evaluateAbsent()
		return
	}
	switch marked := m.mark.config == to.config; {
	case m.runs(to.config):
		m.evaluateArrival(to, now)
	case marked && m.mark.step == stepDrain:
		m.stage = drains
	case marked && m.desires(to.config) && m.gaveUp():
		m.evaluateExcuse(now)
	case marked && m.mark.step == stepAsk:
		m.evaluateWork(now)
	case m.busy() && now.Before(m.mark.since.Add(workTime)):
		// What it is at has another aim: it is told of the new one when it has both hands free.
		m.stage, m.why = works, fmt.Sprintf("Node %s is still at work on the configuration before", m.node.Name)
	case m.current() == "" && m.mark.step == "":
		m.evaluateSilence(now)
	default:
		m.stage = waits
	}
}

func (m *member) evaluateAbsent() {
	m.stage, m.why = absent, fmt.Sprintf("Node %s of Machine %s is gone: it comes back when its kubelet starts, or delete the Machine to have it reinstalled",
		m.machine.Status.NodeRef.Name, m.machine.Name)
	if m.disputed {
		m.why = fmt.Sprintf("Machine %s and another one both have Node %s: delete the one that is not its machine", m.machine.Name, m.machine.Status.NodeRef.Name)
	}
}

// evaluateArrival is about a node that says that it runs the target. One that was updated has to show that it is well; one that was installed with the
// target has nothing to show here.
func (m *member) evaluateArrival(to aim, now time.Time) {
	m.stage = arrived
	if m.mark.step == "" {
		return
	}
	switch version := m.node.Status.NodeInfo.KubeletVersion; {
	case !m.ready():
		m.stage, m.why = works, fmt.Sprintf("Node %s has the configuration and is not Ready", m.node.Name)
	case !sameVersion(version, to.kubelet):
		m.stage, m.why = works, fmt.Sprintf("Node %s has the configuration and runs kubelet %s instead of v%s", m.node.Name, version, to.kubelet)
	}
	if m.stage == works && now.After(m.mark.since.Add(workTime)) {
		m.stage = failed
	}
}

// evaluateWork is about a node that was asked.
func (m *member) evaluateWork(now time.Time) {
	m.stage, m.why = works, fmt.Sprintf("Node %s takes the configuration", m.node.Name)
	switch {
	case m.busy() && now.After(m.mark.since.Add(workTime)):
		m.stage, m.why = failed, fmt.Sprintf("Node %s has been at work on the configuration for more than %s: look at the journal of its node-agent", m.node.Name, workTime)
	case !m.busy() && now.After(m.mark.since.Add(answerTime)):
		m.stage, m.why = failed, fmt.Sprintf("Node %s was asked to take the configuration, and its node-agent has not answered for more than %s: is the machine on, and does it reach the API server?",
			m.node.Name, answerTime)
	}
}

// evaluateExcuse is about a node that gave up. One that went back stays there. One that failed tries again by itself: the release's image or the
// configuration may not be there yet.
func (m *member) evaluateExcuse(now time.Time) {
	m.stage, m.why = failed, m.excuse()
	if !m.wentBack() && now.Before(m.mark.since.Add(answerTime)) {
		m.stage = works
	}
}

// evaluateSilence is about a node that has never said what it runs. Nobody empties it for an update that it would not make.
func (m *member) evaluateSilence(now time.Time) {
	if now.Before(m.node.CreationTimestamp.Add(answerTime)) {
		m.stage, m.why = works, fmt.Sprintf("Node %s has not said yet which configuration it runs", m.node.Name)
		return
	}
	m.stage, m.why = failed, fmt.Sprintf("Node %s does not say which configuration it runs: its node-agent cannot update in place; delete Machine %s to have it reinstalled",
		m.node.Name, m.machine.Name)
}

// runs tells whether the node says that it has the configuration and does not want another one.
func (m *member) runs(config string) bool {
	desired := m.node.Annotations[hyperv1.DesiredNodeConfigAnnotation]
	return m.current() == config && (desired == "" || desired == config) && !m.busy() && !m.gaveUp()
}

func (m *member) current() string { return m.node.Annotations[hyperv1.CurrentNodeConfigAnnotation] }

func (m *member) desires(config string) bool {
	return m.node.Annotations[hyperv1.DesiredNodeConfigAnnotation] == config
}

func (m *member) busy() bool {
	return m.node.Annotations[hyperv1.NodeConfigStateAnnotation] == hyperv1.NodeConfigWorking
}

func (m *member) wentBack() bool {
	return m.node.Annotations[hyperv1.NodeConfigStateAnnotation] == hyperv1.NodeConfigRolledBack
}

func (m *member) gaveUp() bool {
	return m.wentBack() || m.node.Annotations[hyperv1.NodeConfigStateAnnotation] == hyperv1.NodeConfigFailed
}

// excuse repeats why a node gave up, in one line and not at any length: anybody who has the machine may have written it.
func (m *member) excuse() string {
	text := strings.Join(strings.FieldsFunc(m.node.Annotations[hyperv1.NodeConfigMessageAnnotation], func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	text = strings.TrimSuffix(condition.Shorten(text, maxSentence), ".")
	if text == "" {
		text = "its node-agent does not say why"
	}
	if m.wentBack() {
		return fmt.Sprintf("Node %s went back: %s", m.node.Name, text)
	}
	return fmt.Sprintf("Node %s failed: %s", m.node.Name, text)
}

// cordoned tells whether this controller cordoned the node.
func (m *member) cordoned() bool {
	return m.node != nil && m.node.Annotations[hyperv1.NodeUpdateCordonedAnnotation] != ""
}

func (m *member) ready() bool {
	if m.node == nil {
		return false
	}
	for _, c := range m.node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// sameVersion compares a kubelet's version with the wanted one: a build's suffix counts no more than it does for the API server.
func sameVersion(kubelet, wanted string) bool {
	if wanted == "" {
		return true
	}
	a, errA := semver.ParseTolerant(kubelet)
	b, errB := semver.ParseTolerant(wanted)
	return errA == nil && errB == nil && a.Major == b.Major && a.Minor == b.Minor && a.Patch == b.Patch
}
