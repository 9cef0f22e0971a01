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

// ConditionCredentials tells whether the credentials are those under which the machine can be seen and given back.
const ConditionCredentials = "MAASCredentialsUsable"

// aboutCredentials are the problems that other credentials solve.
var aboutCredentials = []string{ReasonCredentialsMissing, ReasonUnauthorized, ReasonAnotherUser}

func (s *scope) credentialsConditions() []metav1.Condition {
	problem := s.findings.problem
	switch {
	case problem != nil && slices.Contains(aboutCredentials, problem.Reason):
		return []metav1.Condition{condition.False(ConditionCredentials, problem.Reason, problem.Message)}
	case s.user == "":
		return nil // MAAS was not asked.
	}
	return []metav1.Condition{condition.True(ConditionCredentials, "AsExpected", "")}
}

// AnotherUser says that credentials are those of another MAAS user than machines were allocated under.
func AnotherUser(whose, owner, user string) Problem {
	return Problem{ReasonAnotherUser, fmt.Sprintf("%s belongs to the MAAS user %s, and the API key in the Secret with the MAAS credentials is of the user %s, "+
		"from whom MAAS hides it: put a key of %s there, which every key of that user is. Until then nothing is concluded and nothing is released", whose, owner, user, owner)}
}

// sameUser stops before anything is concluded from what MAAS shows to another user than the one under whom the machine was
// allocated, or may have been: it hides the machine, and the allocations by key with it.
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
		whose = "the allocation that is under way"
	}
	problem := AnotherUser(whose, owner, s.user)
	return r.stop(s, problem.Reason, problem.Message)
}

// allocation is what is told of the machine in MAAS's event log, where the sweep finds it when the mark was never written.
func (s *scope) allocation() maas.Allocation {
	made := maas.Allocation{UID: s.uid()}
	if s.infra != nil {
		made.ClusterUID = ClusterUID(s.infra)
	}
	return made
}

// noteUser writes down on the MaasCluster that MAAS is asked for machines, and as which user: it must not go before somebody looked
// for what is left of it.
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

// hidden finds out what it means that MAAS refuses to show the machine, or does not find it. Two answers must agree before
// anything is concluded: one alone may be that of a proxy that lets some paths pass.
func (r *Reconciler) hidden(ctx context.Context, s *scope, cause error) (ctrl.Result, error) {
	shown, err := s.identity.Client.ListMachines(ctx, maas.MachineFilter{SystemIDs: []string{s.systemID()}})
	switch {
	case err != nil:
		return r.problem(ctx, s, err)
	case len(shown) > 0:
		return r.problem(ctx, s, fmt.Errorf("%w; but MAAS lists the machine: look for a proxy that answers in its place", cause))
	case maas.IsForbidden(cause) && s.machine.Annotations[infrav1.OwnerAnnotation] == "":
		return r.stop(s, ReasonForbidden, fmt.Sprintf("%v; under which MAAS user it was allocated is not known: if it was %s, annotate the MaasMachine with %s=%s",
			cause, s.user, infrav1.OwnerAnnotation, s.user))
	}
	// A user sees what is his and what is nobody's.
	s.foreign = maas.IsForbidden(cause)
	return phase.Done()
}

// own finds out whether the machine is still the one that was allocated for this MaasMachine, where somebody has it.
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
	// An older provider, or another one, allocated it.
	return ctrl.Result{}, r.write(ctx, s, func() error {
		annotate(s.machine, infrav1.OwnerAnnotation, s.user)
		return nil
	})
}

// presumed spares a settled machine the question that own asks: it carries our mark, and was never seen in other hands.
func (s *scope) presumed(m *maas.Machine) bool {
	leaving := !s.machine.DeletionTimestamp.IsZero() || s.retrying()
	return !leaving && m.Owner == s.user && m.Annotations[maas.AnnotationMachineUID] == s.uid() && !noticedLoss(s.machine)
}

// ours tells whether a machine is still allocated for this MaasMachine: MAAS lists it by our key. Marks do not say it: they outlive
// an allocation, and those of the next one are written after it. A machine that was not allocated by this provider has no key, and
// is ours as long as it has no mark of others and nobody was seen taking it away. One that nobody has is ours if we had it last.
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
