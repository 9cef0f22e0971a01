// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// ReadyConditions lists the conditions of a ready NodePool, in the order in which they become true.
var ReadyConditions = []string{
	hyperv1.NodePoolReconciliationActiveConditionType, hyperv1.NodePoolValidReleaseImageConditionType,
	hyperv1.NodePoolValidPlatformConfigConditionType, hyperv1.NodePoolValidPlatformImageType, hyperv1.NodePoolValidArchPlatform,
	hyperv1.NodePoolValidMachineConfigConditionType, hyperv1.NodePoolValidTuningConfigConditionType,
	hyperv1.NodePoolValidMachineTemplateConditionType, hyperv1.NodePoolValidGeneratedPayloadConditionType,
	hyperv1.NodePoolAllMachinesReadyConditionType, hyperv1.NodePoolReachedIgnitionEndpoint, hyperv1.NodePoolAllNodesHealthyConditionType,
	hyperv1.NodePoolReadyConditionType,
}

// Conditions converts the conditions of a NodePool to metav1.Condition.
func Conditions(pool *hyperv1.NodePool) []metav1.Condition {
	var conditions []metav1.Condition
	for _, c := range pool.Status.Conditions {
		conditions = append(conditions, metav1.Condition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return conditions
}
