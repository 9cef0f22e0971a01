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
	// answerTime is how long a node-agent may take to start on a request. It is also how long a new node may take to
	// report its configuration.
	answerTime = 10 * time.Minute
	// workTime is how long an update may take: an image of the payload over a slow link, a restart of the machine, and a
	// rollback.
	workTime = 45 * time.Minute
	// maxSentence is the maximum length in bytes of a node's message that is repeated.
	maxSentence = 400
)

// stage is the progress of a node towards the target.
type stage string

const (
	// waits means that the update of the node has not started.
	waits stage = "waits"
	// drains means that the node is being drained.
	drains stage = "drains"
	// works means that the target was requested from the node-agent.
	works stage = "works"
	// arrived means that the node runs the target.
	arrived stage = "arrived"
	// failed means that the node does not reach the target without help.
	failed stage = "failed"
	// absent means that the Node of a Machine does not exist, or that two Machines claim it.
	absent stage = "absent"
)

// aim is the target of the nodes of a MachineSet.
type aim struct {
	// config is the hash of the configuration.
	config string
	// kubelet is the kubelet version for it, without a leading v; empty if the operator did not specify it.
	kubelet string
}

// member is a Machine of the set with its node.
type member struct {
	machine *clusterv1.Machine
	// node is nil if the Machine has no Node.
	node *corev1.Node
	// mark is the progress that this controller stored on the Machine.
	mark mark
	// disputed reports that another Machine names the same Node.
	disputed bool

	// stage and why are the results of the evaluation; why is a sentence without the full stop.
	stage stage
	why   string
}

// evaluate computes the stage of the member. It trusts its own marks and the times of the API server. What the node
// reports only affects this node.
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
		// The node still applies a different configuration. The new one is requested when it has finished.
		m.stage, m.why = works, fmt.Sprintf("Node %s is still applying the previous configuration", m.node.Name)
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

// evaluateArrival handles a node that reports the target. An updated node must also be Ready and run the right kubelet
// version. A node that was installed with the target needs neither.
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

// evaluateWork handles a node whose node-agent has the request to apply the target.
func (m *member) evaluateWork(now time.Time) {
	m.stage, m.why = works, fmt.Sprintf("Node %s is applying the configuration", m.node.Name)
	switch {
	case m.busy() && now.After(m.mark.since.Add(workTime)):
		m.stage, m.why = failed, fmt.Sprintf("Node %s has been applying the configuration for more than %s: check the journal of its node-agent", m.node.Name, workTime)
	case !m.busy() && now.After(m.mark.since.Add(answerTime)):
		m.stage, m.why = failed, fmt.Sprintf("Node %s was asked to apply the configuration, and its node-agent has not answered for more than %s: check that the machine is on and reaches the API server",
			m.node.Name, answerTime)
	}
}

// evaluateExcuse handles a node that reports a failure. A node that rolled back does not retry. A node that failed
// retries automatically: the release's image or the configuration may not be available yet.
func (m *member) evaluateExcuse(now time.Time) {
	m.stage, m.why = failed, m.excuse()
	if !m.wentBack() && now.Before(m.mark.since.Add(answerTime)) {
		m.stage = works
	}
}

// evaluateSilence handles a node that has never reported its configuration. It is not drained, since its node-agent
// would probably not apply the update.
func (m *member) evaluateSilence(now time.Time) {
	if now.Before(m.node.CreationTimestamp.Add(answerTime)) {
		m.stage, m.why = works, fmt.Sprintf("Node %s has not reported yet which configuration it runs", m.node.Name)
		return
	}
	m.stage, m.why = failed, fmt.Sprintf("Node %s does not report which configuration it runs: its node-agent cannot update in place; delete Machine %s to have it reinstalled",
		m.node.Name, m.machine.Name)
}

// runs reports whether the node reports that configuration and desires no other.
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

// excuse returns the failure that a node reports, in one line of limited length: any user with access to the machine
// may have written it.
func (m *member) excuse() string {
	text := strings.Join(strings.FieldsFunc(m.node.Annotations[hyperv1.NodeConfigMessageAnnotation], func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	text = strings.TrimSuffix(condition.Shorten(text, maxSentence), ".")
	if text == "" {
		text = "its node-agent does not report why"
	}
	if m.wentBack() {
		return fmt.Sprintf("Node %s rolled back: %s", m.node.Name, text)
	}
	return fmt.Sprintf("Node %s failed: %s", m.node.Name, text)
}

// cordoned reports whether this controller cordoned the node.
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

// sameVersion compares a kubelet's version with the desired one: it ignores the build suffix, as for the API server.
func sameVersion(kubelet, wanted string) bool {
	if wanted == "" {
		return true
	}
	a, errA := semver.ParseTolerant(kubelet)
	b, errB := semver.ParseTolerant(wanted)
	return errA == nil && errB == nil && a.Major == b.Major && a.Minor == b.Minor && a.Patch == b.Patch
}
