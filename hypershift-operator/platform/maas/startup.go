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

// What the provider says of a MaasMachine, by type and reason of its conditions.
const (
	machineAllocated = "MachineAllocated"
	nodeFound        = "NodeProviderIDSet"
	nodeTimedOut     = "NodeTimedOut"
)

// NodeStartup is what the provider takes at most: to find a machine, to make (where it is a virtual one) and install one after another, and
// to see its Node.
func (*Platform) NodeStartup(pool platform.Pool) time.Duration {
	block, commission := settings(pool), time.Duration(0)
	if block.LXD != nil && block.LXD.Enabled {
		commission = infrav1.DefaultCommissionTimeout
	}
	return within(block.AllocateTimeout, infrav1.DefaultAllocateTimeout) +
		infrav1.DefaultDeployAttempts*(commission+within(block.DeployTimeout, infrav1.DefaultDeployTimeout)) +
		within(block.BootTimeout, infrav1.DefaultBootTimeout) + within(block.JoinTimeout, infrav1.DefaultJoinTimeout)
}

// within is what is set, else the provider's default, which stands for zero too.
func within(set *metav1.Duration, otherwise time.Duration) time.Duration {
	if set == nil || set.Duration <= 0 {
		return otherwise
	}
	return set.Duration
}

// MachineStart begins with a machine of MAAS. Until there is one, another MaasMachine would get none either.
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

// failure is why the provider gave a machine up. The reason of its condition says more than the one of the older contract.
func failure(machine *infrav1.MaasMachine) (reason, message string) {
	reason = *machine.Status.FailureReason
	if c := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.ReadyCondition); c != nil && c.Status != metav1.ConditionTrue {
		reason = cmp.Or(c.Reason, reason)
	}
	if machine.Status.FailureMessage != nil {
		message = *machine.Status.FailureMessage
	}
	return cmp.Or(reason, "MachineFailed"), cmp.Or(message, "the provider gave the machine up")
}
