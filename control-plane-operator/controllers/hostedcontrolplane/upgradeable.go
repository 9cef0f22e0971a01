// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

// Reasons why a control plane should not be upgraded to the next minor version now.
const (
	reasonUpdateInProgress  = "UpdateInProgress"
	reasonComponentsFailing = "ComponentsFailing"
)

// upgradeable reports whether the control plane can be upgraded to the next minor version. The hypershift-operator
// knows the NodePools and checks whether their nodes allow an upgrade. An upgrade to another patch version is never
// blocked: it may fix the current release.
func upgradeable(current configv1.UpdateHistory, failing error) metav1.Condition {
	t := string(hyperv1.ClusterVersionUpgradeable)
	switch {
	case current.State != configv1.CompletedUpdate:
		return condition.False(t, reasonUpdateInProgress, fmt.Sprintf("Release %s is still being rolled out", current.Version))
	case failing != nil:
		return condition.False(t, reasonComponentsFailing, "Components of the control plane fail: "+failing.Error())
	}
	return condition.True(t, hyperv1.AsExpectedReason, "")
}
