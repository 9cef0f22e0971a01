// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

// tellRestoring reports that a control plane waits for its backup and does not serve. The last reported state is out
// of date. A restore of a running cluster waits for this status. Since reconciles do not overlap, the operator
// recreates nothing after it has written this status.
func (r *Reconciler) tellRestoring(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	before := *hcp.Status.DeepCopy()
	gone := []hyperv1.ConditionType{hyperv1.HostedControlPlaneAvailable, hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable}
	// The members are not checked until etcd is restored.
	if meta.FindStatusCondition(hcp.Status.Conditions, string(hyperv1.EtcdMembersHealthy)) != nil {
		gone = append(gone, hyperv1.EtcdMembersHealthy)
	}
	for _, t := range gone {
		hcp.Status.Conditions = condition.Merge(hcp.Status.Conditions, hcp.Generation,
			condition.False(string(t), hyperv1.WaitingForBackupReason, "The control plane waits for `hypershift restore cluster` to bring its keys and its data"))
	}
	hcp.Status.Ready = false
	return r.writeStatus(ctx, hcp, before)
}
