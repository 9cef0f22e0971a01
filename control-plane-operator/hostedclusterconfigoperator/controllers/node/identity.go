// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/csrapproval"
)

// impersonated returns the Machine whose provider ID a node has, if the node has the name of a different Machine; nil
// otherwise. The admission policy hypershift-node-identity rejects such nodes. This check finds nodes that are older
// than the policy, or that an administrator of the guest created.
func impersonated(node *corev1.Node, machines []clusterv1.Machine) *clusterv1.Machine {
	own := machineOf(node.Name, machines)
	if own == nil || node.Spec.ProviderID == "" || own.Spec.ProviderID == node.Spec.ProviderID {
		return nil
	}
	for i := range machines {
		if machines[i].Spec.ProviderID == node.Spec.ProviderID {
			return &machines[i]
		}
	}
	return nil
}

// refuse reports a node with the identity of another Machine, once for each node. Such a node gets no labels or
// taints.
func (r *Reconciler) refuse(ctx context.Context, node *corev1.Node, victim *clusterv1.Machine) {
	if _, told := r.told.LoadOrStore(node.UID, true); told {
		return
	}
	csrapproval.CountRefusal()
	ctrl.LoggerFrom(ctx).Info("Refused a node with the provider ID of another Machine", "machine", victim.Name,
		"providerID", node.Spec.ProviderID)
	if r.Recorder != nil {
		r.Recorder.Eventf(victim, nil, corev1.EventTypeWarning, csrapproval.IdentityRefused, "Refuse",
			"Node %s of the guest has the provider ID %s of this Machine and the name of another one; delete the Node",
			node.Name, node.Spec.ProviderID)
	}
}
