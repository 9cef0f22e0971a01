// SPDX-License-Identifier: Apache-2.0

package inplaceupgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// maxNamed is the maximum number of nodes in a message.
const maxNamed = 3

// rollout is the state of a MachineSet's update in one reconcile.
type rollout struct {
	set *clusterv1.MachineSet
	aim aim
	// limit is the maximum number of nodes that may be out of service at once.
	limit int
	// members are the Machines that have a node, in the order of their update.
	members []*member
}

func newRollout(set *clusterv1.MachineSet) *rollout {
	limit, err := strconv.Atoi(set.Annotations[hyperv1.NodePoolMaxUnavailableAnnotation])
	if err != nil {
		limit = 1
	}
	return &rollout{set: set, limit: max(limit, 1), aim: aim{
		config:  set.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation],
		kubelet: set.Annotations[hyperv1.NodePoolKubeletVersionAnnotation],
	}}
}

// sort puts nodes that are not Ready first: updating them takes no capacity away.
func (ro *rollout) sort() {
	rank := func(m *member) int {
		if m.ready() {
			return 1
		}
		return 0
	}
	slices.SortFunc(ro.members, func(a, b *member) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.machine.Name, b.machine.Name))
	})
}

func (ro *rollout) at(stages ...stage) []*member {
	return slices.DeleteFunc(slices.Clone(ro.members), func(m *member) bool { return !slices.Contains(stages, m.stage) })
}

// stopped reports whether a node failed. The rollout then stops, since the cause may break the next node too.
func (ro *rollout) stopped() bool { return len(ro.at(failed)) > 0 }

// room returns how many more nodes may start their update. Nodes that are being updated count against the limit, and
// so do nodes that are out of service for other reasons. A waiting node that is not Ready does not count yet: it is
// updated before all others.
func (ro *rollout) room() int {
	room := ro.limit
	for _, m := range ro.members {
		if m.mark.step != "" && m.stage != arrived || m.stage == absent || m.stage == arrived && !m.ready() {
			room--
		}
	}
	return room
}

// advance takes the next step for each node that has started.
func (r *Reconciler) advance(ctx context.Context, ro *rollout) (ctrl.Result, error) {
	var failures []error
	for _, m := range ro.members {
		err := r.step(ctx, ro, m)
		if err != nil && m.stage == arrived {
			// The update is not complete until all of its nodes are schedulable again.
			m.stage, m.why = works, fmt.Sprintf("Node %s is being uncordoned", m.node.Name)
		}
		failures = append(failures, err)
	}
	return ctrl.Result{}, errors.Join(failures...)
}

func (r *Reconciler) step(ctx context.Context, ro *rollout, m *member) error {
	switch {
	case m.stage == arrived:
		return r.finish(ctx, ro, m)
	case m.stage == failed:
		return r.giveUp(ctx, ro, m)
	case m.stage == drains && ro.stopped():
		return r.release(ctx, m)
	case m.stage == drains:
		return r.empty(ctx, ro, m)
	case m.stage == works && m.mark.step == stepAsk && m.mark.config == ro.aim.config:
		return r.ask(ctx, ro, m)
	case m.stage == waits && m.mark.step != "" && !ro.stopped():
		// The node was started for a previous target, or failed and was requested again. It already counts against the
		// limit.
		return r.start(ctx, ro, m)
	}
	return nil
}

// begin starts as many nodes as the limit allows.
func (r *Reconciler) begin(ctx context.Context, ro *rollout) (ctrl.Result, error) {
	if ro.stopped() {
		return phase.Done()
	}
	room := ro.room()
	var failures []error
	for _, m := range ro.at(waits) {
		if m.mark.step != "" || room <= 0 {
			continue
		}
		room--
		failures = append(failures, r.start(ctx, ro, m))
	}
	return ctrl.Result{}, errors.Join(failures...)
}

// report writes the progress of the nodes to the MachineSet, and its new current version at the end.
func (r *Reconciler) report(ctx context.Context, ro *rollout) (ctrl.Result, error) {
	through := len(ro.at(arrived)) == len(ro.members)
	err := upsert.PatchLatest(ctx, r.Management, ro.set, func() {
		tell(ro.set, hyperv1.NodePoolUpgradeInProgressTrueAnnotation, ro.progress())
		tell(ro.set, hyperv1.NodePoolUpgradeInProgressFalseAnnotation, sentences(ro.at(failed)))
		if through {
			tell(ro.set, hyperv1.NodePoolUpgradeInProgressTrueAnnotation, "")
			ro.set.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] = ro.aim.config
		}
	})
	switch {
	case err != nil || through:
		return ctrl.Result{}, err
	case len(ro.at(drains)) > 0:
		return phase.After(drainPoll)
	}
	return phase.After(lookAgain)
}

// progress returns the progress of the nodes, without values that change all the time.
func (ro *rollout) progress() string {
	text := fmt.Sprintf("%d of %d nodes are updated", len(ro.at(arrived)), len(ro.members))
	if doing := sentences(ro.at(drains, works, absent)); doing != "" {
		text += ". " + doing
	}
	return text
}

// sentences joins the messages of the first few members.
func sentences(members []*member) string {
	text := ""
	for i, m := range members {
		if i == maxNamed {
			return fmt.Sprintf("%s; and %d more", text, len(members)-maxNamed)
		}
		if i > 0 {
			text += "; "
		}
		text += m.why
	}
	return text
}

// tell sets an annotation, or removes it if the text is empty.
func tell(set *clusterv1.MachineSet, key, text string) {
	if text == "" {
		delete(set.Annotations, key)
		return
	}
	set.Annotations[key] = text
}
