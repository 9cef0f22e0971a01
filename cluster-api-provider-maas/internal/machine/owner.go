// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// ConditionCredentials reports whether the credentials belong to the MAAS user that can see and release the machine.
const ConditionCredentials = infrav1.MAASCredentialsUsableCondition

// aboutCredentials holds the reasons of problems that other credentials fix.
var aboutCredentials = []string{ReasonCredentialsMissing, ReasonUnauthorized, ReasonAnotherUser}

func (s *scope) credentialsConditions() []metav1.Condition {
	problem := s.findings.problem
	switch {
	case problem != nil && slices.Contains(aboutCredentials, problem.Reason):
		return []metav1.Condition{condition.False(ConditionCredentials, problem.Reason, problem.Message)}
	case s.user == "":
		return nil // MAAS was not called.
	}
	return []metav1.Condition{condition.True(ConditionCredentials, "AsExpected", "")}
}

// AnotherUser returns the problem that the credentials and the allocated machines belong to different MAAS users.
func AnotherUser(whose, owner, user string) Problem {
	return Problem{ReasonAnotherUser, fmt.Sprintf("%s belongs to MAAS user %s, but the API key in the Secret with the MAAS credentials belongs to user %s, "+
		"so MAAS hides it; put an API key of user %s into that Secret. Until then no machine is replaced or released", whose, owner, user, owner)}
}

// sameUser stops if the machine was, or may have been, allocated by a MAAS user other than the one of the credentials.
// MAAS hides the machine, and allocations by key, from other users, so the reconcile must not act on what MAAS returns.
func (r *Reconciler) sameUser(ctx context.Context, s *scope) (ctrl.Result, error) {
	user, err := s.identity.Inventory.User(ctx)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	s.user = user.Username
	owner := s.machine.Annotations[infrav1.OwnerAnnotation]
	if owner == "" || owner == s.user || s.systemID() == "" && attemptedAt(s.machine).IsZero() && len(s.outstanding()) == 0 {
		return phase.Done()
	}
	whose := "machine " + s.systemID()
	if s.systemID() == "" {
		whose = "the allocation in progress"
	}
	problem := AnotherUser(whose, owner, s.user)
	return r.stop(s, problem.Reason, problem.Message)
}

// allocation returns the record for the event log of MAAS. The sweep finds it there if the ownership annotations were
// never written.
func (s *scope) allocation() maas.Allocation {
	made := maas.Allocation{UID: s.uid()}
	if s.infra != nil {
		made.ClusterUID = ClusterUID(s.infra)
	}
	return made
}

// noteUser records on the MaasCluster the MAAS user that allocates machines. The MaasCluster is then not deleted
// before the sweep has checked whether machines remain in MAAS.
func (r *Reconciler) noteUser(ctx context.Context, s *scope) error {
	if s.infra == nil || s.infra.Annotations[infrav1.OwnerAnnotation] == s.user {
		return nil
	}
	return upsert.Patch(ctx, r.Client, s.infra, func() {
		if s.infra.Annotations == nil {
			s.infra.Annotations = map[string]string{}
		}
		s.infra.Annotations[infrav1.OwnerAnnotation] = s.user
	})
}

// hidden handles a machine that MAAS hides or does not find. It acts only if two answers agree: a single one may come
// from a proxy that passes some paths only.
func (r *Reconciler) hidden(ctx context.Context, s *scope, cause error) (ctrl.Result, error) {
	shown, err := s.identity.Client.ListMachines(ctx, maas.MachineFilter{SystemIDs: []string{s.systemID()}})
	switch {
	case err != nil:
		return r.problem(ctx, s, err)
	case len(shown) > 0:
		return r.problem(ctx, s, fmt.Errorf("%w; but MAAS lists the machine: check for a proxy that answers instead of MAAS", cause))
	case maas.IsForbidden(cause) && s.machine.Annotations[infrav1.OwnerAnnotation] == "":
		return r.stop(s, ReasonForbidden, fmt.Sprintf("%v; the MAAS user that allocated it is unknown; if it was %s, annotate the MaasMachine with %s=%s",
			cause, s.user, infrav1.OwnerAnnotation, s.user))
	}
	// A MAAS user sees machines that are its own and machines without an owner.
	s.foreign = maas.IsForbidden(cause)
	return phase.Done()
}

// own checks whether an allocated machine is still allocated for this MaasMachine.
func (r *Reconciler) own(ctx context.Context, s *scope) (ctrl.Result, error) {
	m := s.observed
	if m == nil || lifecycle.Evaluate(lifecycle.Leaving, m).Action != lifecycle.Release {
		return phase.Done()
	}
	if !s.presumed(m) {
		ours, err := r.ours(ctx, s, m)
		if err != nil {
			return r.problem(ctx, s, err)
		}
		s.lost, s.proven = !ours && m.Owner != "", ours
	}
	if s.lost || m.Owner != s.user || s.machine.Annotations[infrav1.OwnerAnnotation] != "" {
		return phase.Done()
	}
	// Another provider, or an older version of this one, allocated the machine.
	return ctrl.Result{}, r.write(ctx, s, func() error {
		annotate(s.machine, infrav1.OwnerAnnotation, s.user)
		return nil
	})
}

// presumed reports whether own may skip the call for the machine: it has the ownership annotation of this MaasMachine,
// and no loss was noticed.
func (s *scope) presumed(m *maas.Machine) bool {
	leaving := !s.machine.DeletionTimestamp.IsZero() || s.retrying()
	return !leaving && m.Owner == s.user && m.Annotations[maas.AnnotationMachineUID] == s.uid() && !noticedLoss(s.machine)
}

// ours reports whether a machine is still allocated for this MaasMachine, that is, whether MAAS lists it by its key.
// The ownership annotations are not sufficient. They outlive an allocation, and the annotations of the next
// allocation are written after it.
//
// A machine that this provider did not allocate has no key. It counts as allocated for this MaasMachine if it has no
// annotation of another MaasMachine and no loss was noticed. A machine without an owner counts as allocated if its last
// ownership annotation names this MaasMachine.
func (r *Reconciler) ours(ctx context.Context, s *scope, m *maas.Machine) (bool, error) {
	mark := m.Annotations[maas.AnnotationMachineUID]
	switch {
	case s.proven:
		return true, nil
	case lxd.UIDOf(m.Hostname) == s.uid() && (m.Owner == "" || beforeAllocation[m.Status]):
		return true, nil
	case m.Owner == "":
		return mark == s.uid(), nil
	case s.machine.Annotations[UIDAnnotation] == "":
		return (mark == "" || mark == s.uid()) && !noticedLoss(s.machine), nil
	}
	held, err := s.identity.Client.ListMachines(ctx, maas.MachineFilter{SystemIDs: []string{m.SystemID}, AgentNames: []string{s.key()}})
	return len(held) > 0, err
}
