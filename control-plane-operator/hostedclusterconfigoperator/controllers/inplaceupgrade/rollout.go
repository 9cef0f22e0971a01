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

// maxNamed is how many nodes a message names.
const maxNamed = 3

// rollout is one look at the way of a MachineSet to its target.
type rollout struct {
	set *clusterv1.MachineSet
	aim aim
	// limit is how many nodes may be out of service at once.
	limit int
	// members are the Machines that have a node, those to begin with first.
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

// sort puts nodes that serve nobody first: to update one takes nothing away.
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

// stopped tells whether a node failed: what broke one may break the next.
func (ro *rollout) stopped() bool { return len(ro.at(failed)) > 0 }

// room is how many nodes may be begun yet: those that are begun, and those that are out of service for another reason, take places. A node
// that waits and is not Ready takes its place when it is begun, before all others.
func (ro *rollout) room() int {
	room := ro.limit
	for _, m := range ro.members {
		if m.mark.step != "" && m.stage != arrived || m.stage == absent || m.stage == arrived && !m.ready() {
			room--
		}
	}
	return room
}

// advance takes each node that is begun a step further.
func (r *Reconciler) advance(ctx context.Context, ro *rollout) (ctrl.Result, error) {
	var failures []error
	for _, m := range ro.members {
		err := r.step(ctx, ro, m)
		if err != nil && m.stage == arrived {
			// The update is not over before pods may come to all of its nodes.
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
		// Begun for a target that is no longer, or given up and asked for again: it has its place already.
		return r.start(ctx, ro, m)
	}
	return nil
}

// begin begins with as many nodes as there is room for.
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

// report writes on the MachineSet how far its nodes are, and at the end that it has come to its target.
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

// progress is what the nodes are at, without anything that changes by itself.
func (ro *rollout) progress() string {
	text := fmt.Sprintf("%d of %d nodes are updated", len(ro.at(arrived)), len(ro.members))
	if doing := sentences(ro.at(drains, works, absent)); doing != "" {
		text += ". " + doing
	}
	return text
}

// sentences are the words about some members, those of a few.
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

// tell sets an annotation, or takes it away where there is nothing to tell.
func tell(set *clusterv1.MachineSet, key, text string) {
	if text == "" {
		delete(set.Annotations, key)
		return
	}
	set.Annotations[key] = text
}
