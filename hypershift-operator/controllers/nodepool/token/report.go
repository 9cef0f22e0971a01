// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

// waitingForIgnitionServer is the reason while the ignition-server has not reported on a configuration.
const waitingForIgnitionServer = "WaitingForIgnitionServer"

// reportPayload copies the ignition-server's report on the configuration into a condition.
func (s Secrets) reportPayload(token *corev1.Secret) {
	conditionType := hyperv1.NodePoolValidGeneratedPayloadConditionType
	reason, message := string(token.Data[hyperv1.TokenSecretReasonKey]), string(token.Data[hyperv1.TokenSecretMessageKey])
	switch reason {
	case "":
		s.SetCondition(condition.Unknown(conditionType, waitingForIgnitionServer,
			"Waiting for the cluster's ignition-server to render the configuration"+EndpointTrouble(s.HC)))
	case hyperv1.AsExpectedReason:
		s.SetTrue(conditionType, message)
	default:
		s.SetFalse(conditionType, reason, message)
	}
}

// EndpointTrouble returns why machines cannot reach the ignition-server, according to the HostedCluster; empty if it
// reports no problem.
func EndpointTrouble(hc *hyperv1.HostedCluster) string {
	for _, c := range hc.Status.Conditions {
		if c.Type == string(hyperv1.IgnitionEndpointAvailable) && c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("; it is not available (%s): %s", c.Reason, c.Message)
		}
	}
	return ""
}
