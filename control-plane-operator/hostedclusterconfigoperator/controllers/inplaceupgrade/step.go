// SPDX-License-Identifier: Apache-2.0

package inplaceupgrade

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

// start starts the update of a node. It stores the mark first, so that the node counts after a crash of the operator.
// If the node already runs the target, but a different configuration was requested since, it need not be drained.
func (r *Reconciler) start(ctx context.Context, ro *rollout, m *member) error {
	ctrl.LoggerFrom(ctx).Info("Updating a node in place", "node", m.node.Name, "config", ro.aim.config)
	if m.current() == ro.aim.config {
		m.stage, m.why = works, fmt.Sprintf("Node %s already runs the desired configuration", m.node.Name)
		if err := r.mark(ctx, m, stepAsk, ro.aim.config); err != nil {
			return err
		}
		return r.ask(ctx, ro, m)
	}
	m.stage, m.why = drains, fmt.Sprintf("Node %s is being drained", m.node.Name)
	if err := r.mark(ctx, m, stepDrain, ro.aim.config); err != nil {
		return err
	}
	return r.empty(ctx, ro, m)
}

// empty cordons a node and evicts its pods. When none is left, or the pool's drain timeout has expired, it requests the
// configuration from the node-agent.
func (r *Reconciler) empty(ctx context.Context, ro *rollout, m *member) error {
	m.why = fmt.Sprintf("Node %s is being drained", m.node.Name)
	if err := r.cordon(ctx, ro, m); err != nil {
		return err
	}
	left, err := r.drain(ctx, m)
	if err != nil {
		return err
	}
	if len(left) > 0 && !r.drainedLongEnough(ro, m) {
		m.why += describe(left)
		return nil
	}
	m.stage, m.why = works, fmt.Sprintf("Node %s is applying the configuration", m.node.Name)
	if err := r.mark(ctx, m, stepAsk, ro.aim.config); err != nil {
		return err
	}
	return r.ask(ctx, ro, m)
}

// drainedLongEnough reports whether the pool's nodeDrainTimeout has expired; without a timeout it never does.
func (r *Reconciler) drainedLongEnough(ro *rollout, m *member) bool {
	limit := ro.set.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds
	return limit != nil && *limit > 0 && r.Clock.Since(m.mark.since) >= time.Duration(*limit)*time.Second
}

// cordon makes the node unschedulable. A node that a user had cordoned before stays cordoned after the update.
func (r *Reconciler) cordon(ctx context.Context, ro *rollout, m *member) error {
	if m.node.Spec.Unschedulable && !m.cordoned() {
		return nil
	}
	return upsert.Patch(ctx, r.Guest, m.node, func() {
		m.node.Spec.Unschedulable = true
		annotate(m.node, hyperv1.NodeUpdateCordonedAnnotation, ro.aim.config)
	})
}

// ask requests the configuration from the node-agent. It removes the answer to the previous request.
func (r *Reconciler) ask(ctx context.Context, ro *rollout, m *member) error {
	if m.desires(ro.aim.config) {
		return nil
	}
	return upsert.Patch(ctx, r.Guest, m.node, func() {
		annotate(m.node, hyperv1.DesiredNodeConfigAnnotation, ro.aim.config)
		delete(m.node.Annotations, hyperv1.NodeConfigStateAnnotation)
		delete(m.node.Annotations, hyperv1.NodeConfigMessageAnnotation)
	})
}

// finish uncordons the node, and stores its release on the Machine.
func (r *Reconciler) finish(ctx context.Context, ro *rollout, m *member) error {
	if m.mark.step == "" && !m.cordoned() {
		return nil
	}
	if err := r.release(ctx, m); err != nil {
		return err
	}
	return upsert.Patch(ctx, r.Management, m.machine, func() {
		annotate(m.machine, hyperv1.NodePoolReleaseVersionAnnotation, ro.set.Spec.Template.Spec.Version)
	})
}

// giveUp uncordons a node that rolled back, if it is Ready: it runs its previous configuration. Other failed nodes
// stay cordoned. A node that does not answer or retries may start the update at any time. A node that is not Ready
// runs no new pods.
func (r *Reconciler) giveUp(ctx context.Context, ro *rollout, m *member) error {
	if !m.wentBack() || m.mark.step == "" {
		return nil
	}
	if err := r.mark(ctx, m, stepFail, ro.aim.config); err != nil || !m.ready() {
		return err
	}
	return r.uncordon(ctx, m)
}

// release uncordons the node and removes its mark.
func (r *Reconciler) release(ctx context.Context, m *member) error {
	if err := r.uncordon(ctx, m); err != nil {
		return err
	}
	if m.stage == drains {
		m.stage = waits
	}
	m.mark = mark{}
	return upsert.Patch(ctx, r.Management, m.machine, func() { delete(m.machine.Annotations, markAnnotation) })
}

// uncordon reverts what cordon did, and nothing else.
func (r *Reconciler) uncordon(ctx context.Context, m *member) error {
	if !m.cordoned() {
		return nil
	}
	return upsert.Patch(ctx, r.Guest, m.node, func() {
		m.node.Spec.Unschedulable = false
		delete(m.node.Annotations, hyperv1.NodeUpdateCordonedAnnotation)
	})
}

func annotate(obj client.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}
