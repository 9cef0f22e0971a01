// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/support/phase"
)

// requestID identifies what a MaasMachine asks MAAS for. Another spec or another MAAS user makes another request.
func (s *scope) requestID() string {
	return fmt.Sprintf("%s/%d/%s", s.uid(), s.machine.Generation, s.user)
}

// holdBack reports whether MAAS rejected the request of this MaasMachine a moment ago. It then repeats the rejection
// without a call.
//
// The requeue of a reconcile is not sufficient as a backoff. A request is recorded on the MaasMachine before the call
// and removed after its rejection, and each of these writes triggers a reconcile.
func (r *Reconciler) holdBack(s *scope) (ctrl.Result, bool) {
	p, left := r.unmet.standing(s.requestID(), r.Clock.Now())
	if left <= 0 {
		return ctrl.Result{}, false
	}
	s.findings.problem = &p
	return ctrl.Result{RequeueAfter: left}, true
}

// rejected records the problem of a request that MAAS rejected. It holds the request back until the requeue.
func (r *Reconciler) rejected(s *scope, result ctrl.Result, err error) (ctrl.Result, error) {
	if errors.Is(err, phase.ErrStop) && s.findings.problem != nil {
		r.unmet.hold(s.requestID(), *s.findings.problem, result.RequeueAfter, r.Clock.Now())
	}
	return result, err
}
