// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// Condition types and reasons of a MaasMachine that the provider sets.
const (
	machineAllocated = "MachineAllocated"
	nodeFound        = "NodeProviderIDSet"
	nodeTimedOut     = "NodeTimedOut"
)

// NodeStartup returns the provider's maximum time. It covers allocating a machine, the attempts to deploy it, and
// waiting for its Node. For a virtual machine, it also covers composing and commissioning.
func (*Platform) NodeStartup(pool platform.Pool) time.Duration {
	block, commission := settings(pool), time.Duration(0)
	if block.LXD != nil && block.LXD.Enabled {
		commission = infrav1.DefaultCommissionTimeout
	}
	return within(block.AllocateTimeout, infrav1.DefaultAllocateTimeout) +
		infrav1.DefaultDeployAttempts*(commission+within(block.DeployTimeout, infrav1.DefaultDeployTimeout)) +
		within(block.BootTimeout, infrav1.DefaultBootTimeout) + within(block.JoinTimeout, infrav1.DefaultJoinTimeout)
}

// within returns the configured duration, or the provider's default if it is unset or zero.
func within(set *metav1.Duration, otherwise time.Duration) time.Duration {
	if set == nil || set.Duration <= 0 {
		return otherwise
	}
	return set.Duration
}

// MachineStart returns a start that begins with the allocation of a machine in MAAS. Before that, a replacement would
// not get a machine either.
func (*Platform) MachineStart(obj client.Object) platform.MachineStart {
	machine, ok := obj.(*infrav1.MaasMachine)
	if !ok {
		return platform.MachineStart{}
	}
	var start platform.MachineStart
	conditions := machine.Status.Conditions
	if c := meta.FindStatusCondition(conditions, machineAllocated); c != nil && c.Status == metav1.ConditionTrue {
		start.Begun = c.LastTransitionTime.Time
	}
	switch node := meta.FindStatusCondition(conditions, nodeFound); {
	case machine.Status.FailureReason != nil:
		start.Reason, start.Message = failure(machine)
	case node != nil && node.Status == metav1.ConditionFalse && node.Reason == nodeTimedOut:
		start.Reason, start.Message = node.Reason, node.Message
	}
	return start
}

// failure returns the reason why the provider failed a machine. The reason of its Ready condition is more specific than
// the reason of the older contract.
func failure(machine *infrav1.MaasMachine) (reason, message string) {
	reason = *machine.Status.FailureReason
	if c := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.ReadyCondition); c != nil && c.Status != metav1.ConditionTrue {
		reason = cmp.Or(c.Reason, reason)
	}
	if machine.Status.FailureMessage != nil {
		message = *machine.Status.FailureMessage
	}
	return cmp.Or(reason, "MachineFailed"), cmp.Or(message, "the provider reported a terminal failure")
}
