// SPDX-License-Identifier: Apache-2.0

package look

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/nodepool"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/health"
	"github.com/openshift/hypershift/support/terminal"
)

// None is what the commands print for a value that is not known.
const None = "-"

// State is one word for the state of an object.
type State string

// The states of clusters and NodePools. Machines have the phases of Cluster API.
const (
	Available   State = "Available"
	Ready       State = "Ready"
	Creating    State = "Creating"
	Progressing State = "Progressing"
	Updating    State = "Updating"
	Scaling     State = "Scaling"
	Paused      State = "Paused"
	Deleting    State = "Deleting"
	Blocked     State = "Blocked"
	Degraded    State = "Degraded"
	Unavailable State = "Unavailable"
	NotReady    State = "NotReady"
)

// Style returns the style in which a terminal displays the state.
func (s State) Style() terminal.Style {
	switch s {
	case Available, Ready, State(clusterv1.MachinePhaseRunning):
		return terminal.Good
	case Blocked, Degraded, Unavailable, NotReady:
		return terminal.Bad
	}
	return terminal.Attention
}

// StateOfCluster returns the state of a cluster.
func StateOfCluster(hc *hyperv1.HostedCluster) State {
	has := func(t hyperv1.ConditionType, status metav1.ConditionStatus) bool {
		return meta.IsStatusConditionPresentAndEqual(hc.Status.Conditions, string(t), status)
	}
	progress := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.HostedClusterProgressing))
	switch {
	case !hc.DeletionTimestamp.IsZero():
		return Deleting
	case has(hyperv1.ReconciliationActive, metav1.ConditionFalse):
		return Paused
	case !has(hyperv1.HostedClusterAvailable, metav1.ConditionTrue) && CompletedVersion(hc) == "":
		return Creating
	case !has(hyperv1.HostedClusterAvailable, metav1.ConditionTrue):
		return Unavailable
	case has(hyperv1.HostedClusterDegraded, metav1.ConditionTrue):
		return Degraded
	case progress != nil && progress.Status == metav1.ConditionTrue && progress.Reason == hyperv1.BlockedReason:
		return Blocked
	case progress != nil && progress.Status == metav1.ConditionTrue:
		return Progressing
	}
	return Available
}

// StateOfNodePool returns the state of a pool.
func StateOfNodePool(pool *hyperv1.NodePool) State {
	conditions := nodepool.Conditions(pool)
	has := func(t string, status metav1.ConditionStatus) bool {
		return meta.IsStatusConditionPresentAndEqual(conditions, t, status)
	}
	want := ptr.Deref(pool.Spec.Replicas, pool.Status.Replicas)
	switch {
	case !pool.DeletionTimestamp.IsZero():
		return Deleting
	case has(hyperv1.NodePoolReconciliationActiveConditionType, metav1.ConditionFalse):
		return Paused
	case Updates(pool):
		return Updating
	case pool.Status.Replicas != want && pool.Status.Version != "":
		return Scaling
	case has(hyperv1.NodePoolReadyConditionType, metav1.ConditionTrue):
		return Ready
	case pool.Status.Version == "":
		return Creating
	}
	return NotReady
}

// Updates reports whether the nodes of a pool change to another release, configuration or machine template.
func Updates(pool *hyperv1.NodePool) bool {
	conditions := nodepool.Conditions(pool)
	return meta.IsStatusConditionTrue(conditions, hyperv1.NodePoolUpdatingVersionConditionType) ||
		meta.IsStatusConditionTrue(conditions, hyperv1.NodePoolUpdatingConfigConditionType) ||
		meta.IsStatusConditionTrue(conditions, hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType)
}

// StateOfMachine returns the phase of a machine.
func StateOfMachine(m *Machine) State {
	return State(cmp.Or(m.Status.Phase, string(clusterv1.MachinePhaseUnknown)))
}

// FindingOfCluster returns the first condition of a cluster that is not good; nil if all are good.
func FindingOfCluster(hc *hyperv1.HostedCluster) *health.Finding {
	if hc.DeletionTimestamp.IsZero() {
		return health.First(hc.Status.Conditions, health.HostedCluster())
	}
	// The condition of a deleted cluster says what the deletion waits for, once the operator has observed it.
	return deletion(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable), hc.Generation)
}

// FindingOfNodePool returns the first condition of a pool that is not good; nil if all are good.
func FindingOfNodePool(pool *hyperv1.NodePool) *health.Finding {
	conditions := nodepool.Conditions(pool)
	if pool.DeletionTimestamp.IsZero() {
		return health.First(conditions, health.NodePool(ptr.Deref(pool.Spec.Replicas, 1)))
	}
	return deletion(conditions, hyperv1.NodePoolReadyConditionType, 0)
}

func deletion(conditions []metav1.Condition, reports string, generation int64) *health.Finding {
	c := meta.FindStatusCondition(conditions, reports)
	if c == nil || c.Status == metav1.ConditionTrue || c.ObservedGeneration < generation {
		return nil
	}
	return &health.Finding{Condition: *c, Progress: true}
}

// FindingOfMachine returns the first condition of a machine that is not good; nil if all are good.
func FindingOfMachine(m *Machine) *health.Finding {
	if !m.DeletionTimestamp.IsZero() {
		return health.First(m.Status.Conditions, health.DeletingMachine())
	}
	return health.First(m.Status.Conditions, health.Machine())
}

// Cause returns the first condition of a machine or its host that is not good; nil if all are good. The host's says
// more. It is no fault while the machine is installed or deleted, unless the host reports one.
func (m *Machine) Cause() *health.Finding {
	cause := FindingOfMachine(m)
	if m.Hardware != nil && m.Hardware.Finding != nil {
		cause = m.Hardware.Finding
	}
	if cause == nil || cause.Progress {
		return cause
	}
	switch clusterv1.MachinePhase(m.Status.Phase) {
	case clusterv1.MachinePhasePending, clusterv1.MachinePhaseProvisioning, clusterv1.MachinePhaseProvisioned,
		clusterv1.MachinePhaseDeleting:
		moving := *cause
		moving.Progress = m.Hardware == nil || m.Hardware.Finding == nil
		return &moving
	}
	return cause
}

// CompletedVersion returns the newest version that a cluster has completed; empty if there is none. An operator of an
// OpenShift release reports it for the control plane and the nodes separately.
func CompletedVersion(hc *hyperv1.HostedCluster) string {
	if hc.Status.Version != nil {
		for _, entry := range hc.Status.Version.History {
			if entry.State == configv1.CompletedUpdate {
				return entry.Version
			}
		}
	}
	for _, entry := range hc.Status.ControlPlaneVersion.History {
		if entry.State == configv1.CompletedUpdate {
			return entry.Version
		}
	}
	return ""
}

// DesiredVersion returns the version that a cluster changes to; empty if the operator has not read the release yet.
func DesiredVersion(hc *hyperv1.HostedCluster) string {
	if hc.Status.Version == nil {
		return ""
	}
	return hc.Status.Version.Desired.Version
}

// Autoscaled describes the bounds of a pool whose number of nodes the autoscaler chooses; empty for other pools.
func Autoscaled(pool *hyperv1.NodePool) string {
	scaling := pool.Spec.AutoScaling
	if scaling == nil {
		return ""
	}
	return fmt.Sprintf("%d-%d", ptr.Deref(scaling.Min, 0), scaling.Max)
}

// Nodes describes how many nodes a pool has and should have.
func Nodes(pool *hyperv1.NodePool) string {
	if pool.Spec.Replicas == nil {
		return fmt.Sprint(pool.Status.Replicas)
	}
	return fmt.Sprintf("%d/%d", pool.Status.Replicas, *pool.Spec.Replicas)
}

// maxMessage is the longest message that the commands show, in bytes.
const maxMessage = 400

// Text describes a finding on one line, with its age; empty for nil.
func Text(f *health.Finding, now time.Time) string {
	if f == nil {
		return ""
	}
	text := condition.Shorten(f.String(), maxMessage)
	if !f.LastTransitionTime.IsZero() {
		text += ", for " + Age(f.LastTransitionTime, now)
	}
	return text
}

// Age returns the time since t, as kubectl prints it.
func Age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return None
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// Or returns a text, or None if it is empty.
func Or(text string) string { return cmp.Or(text, None) }

// VersionOfRelease returns the version of the release in the spec of a cluster; empty if the operator has not accepted
// that release.
func VersionOfRelease(hc *hyperv1.HostedCluster) string {
	valid := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.ValidReleaseImage))
	if valid == nil || valid.Status != metav1.ConditionTrue || valid.ObservedGeneration < hc.Generation {
		return ""
	}
	if StateOfCluster(hc) == Blocked {
		return ""
	}
	return DesiredVersion(hc)
}

// SumOfNodes describes how many nodes some pools have and should have.
func SumOfNodes(pools []hyperv1.NodePool) string {
	have, want := int32(0), int32(0)
	for i := range pools {
		have += pools[i].Status.Replicas
		want += ptr.Deref(pools[i].Spec.Replicas, pools[i].Status.Replicas)
	}
	return fmt.Sprintf("%d/%d", have, want)
}

// Endpoint returns the host and port of a cluster's API; None if it has none yet.
func Endpoint(hc *hyperv1.HostedCluster) string {
	endpoint := hc.Status.ControlPlaneEndpoint
	if endpoint.Host == "" {
		return None
	}
	return net.JoinHostPort(endpoint.Host, strconv.Itoa(int(endpoint.Port)))
}
