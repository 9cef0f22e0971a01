// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/support/nodelabels"
	"github.com/openshift/hypershift/support/upsert"
)

// reconcileNodeMarks writes the pool's node labels and taints to its Machines. The control plane copies them to each
// Node once, when it joins: a change replaces no machine and reaches nodes that join later.
func (r *Reconciler) reconcileNodeMarks(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	taints, labels := taintsJSON(s.Pool), s.carriedLabels()
	var failures []error
	for _, machine := range s.Machines {
		if !machine.DeletionTimestamp.IsZero() {
			continue
		}
		err := upsert.Patch(ctx, r.Client, machine, func() {
			scope.Annotate(machine, hyperv1.NodePoolTaintsAnnotation, taints)
			machine.Labels = withNodeLabels(machine.Labels, labels)
		})
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return ctrl.Result{}, errors.Join(failures...)
}

// carriedLabels returns the node labels of the pool and of its platform. It omits labels that no Machine can have.
func (s *reconciliation) carriedLabels() map[string]string {
	labels := map[string]string{}
	if !s.InPlace() {
		maps.Copy(labels, s.Traits().NodeLabels)
	}
	maps.Copy(labels, nodelabels.Valid(s.Pool.Spec.NodeLabels))
	return labels
}

// withNodeLabels replaces the labels that represent node labels and keeps all other labels.
func withNodeLabels(labels, nodeLabels map[string]string) map[string]string {
	merged := map[string]string{}
	for key, value := range labels {
		if !strings.HasPrefix(key, hyperv1.NodeLabelPrefix+".") {
			merged[key] = value
		}
	}
	for key, value := range nodeLabels {
		merged[hyperv1.NodeLabelPrefix+"."+key] = value
	}
	return merged
}

func taintsJSON(pool *hyperv1.NodePool) string {
	taints := pool.Spec.Taints
	if taints == nil {
		taints = []hyperv1.Taint{}
	}
	raw, _ := json.Marshal(taints) // Strings always encode without an error.
	return string(raw)
}
