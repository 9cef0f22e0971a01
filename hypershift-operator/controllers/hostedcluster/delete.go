// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/deletion"
	"github.com/openshift/hypershift/support/phase"
)

// deletion returns the phases that delete a cluster. Its object then stays for its grace period.
func (r *Reconciler) deletion(s *scope) []phase.Phase[*scope] {
	deleter := deletion.Deleter{Client: r.Client, LiveReader: r.LiveReader, OperatorImage: r.Settings.OperatorImage}
	var phases []phase.Phase[*scope]
	for _, one := range deleter.Steps(s.Scope) {
		phases = append(phases, step(one.Name, one.Run))
	}
	if s.Refused == "" {
		phases = append(phases, phase.Phase[*scope]{Name: "grace period", Critical: true, Run: waitForGrace})
	}
	return phases
}

// step returns a phase of the deletion. Later phases wait until the part that it deletes is gone.
func step(name string, run func(context.Context, *cluster.Scope) (string, error)) phase.Phase[*scope] {
	return phase.Phase[*scope]{Name: "deleting the " + name, Critical: true, Run: func(ctx context.Context, s *scope) (ctrl.Result, error) {
		waitsFor, err := run(ctx, s.Scope)
		if phase.Outdated(err) {
			// Not a failure: the next reconcile follows immediately with the current object.
			s.deletion = fmt.Sprintf("Deleting the %s", name)
			return ctrl.Result{}, err
		}
		if err != nil {
			s.deletion = fmt.Sprintf("Deleting the %s failed and is tried again: %v", name, err)
			return ctrl.Result{}, err
		}
		if waitsFor != "" {
			s.deletion = waitsFor
			return ctrl.Result{RequeueAfter: deletion.Poll}, phase.ErrStop
		}
		return phase.Done()
	}}
}

// waitForGrace keeps the object for the grace period that an annotation may request.
func waitForGrace(_ context.Context, s *scope) (ctrl.Result, error) {
	left := deletion.GraceLeft(s.Scope)
	if left <= 0 {
		return phase.Done()
	}
	s.deletion = "Everything is deleted; the grace period lasts until " + s.Now.Add(left).UTC().Format(time.RFC3339)
	return ctrl.Result{RequeueAfter: left}, phase.ErrStop
}
