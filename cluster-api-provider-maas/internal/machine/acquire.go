// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// allocateTimeout is the timeout of the allocate call. Timing.Doubt must be longer.
const allocateTimeout = 30 * time.Second

//nolint:gosec // It spreads calls in time, and no secret depends on it.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/5+1) }

// acquire allocates a machine for a MaasMachine without one. It adopts a machine that an earlier reconcile allocated,
// else it allocates a new one.
func (r *Reconciler) acquire(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.systemID() != "" {
		return phase.Done()
	}
	if AwaitsRestore(s.infra) {
		return r.awaitRestore(s)
	}
	if result, err := r.inherit(ctx, s); err != nil || s.systemID() != "" {
		return result, err
	}
	if s.machine.Spec.IsLXD() {
		return r.acquireVM(ctx, s)
	}
	adopted, err := r.adopt(ctx, s)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	if adopted {
		return phase.Done()
	}
	if left := r.doubtLeft(s); left > 0 {
		s.findings.problem = &Problem{ReasonAllocationUncertain, "MAAS was asked for a machine and its answer was not received; waiting to see whether one turns up"}
		return ctrl.Result{RequeueAfter: min(left, jitter(r.Timing.Poll/2))}, phase.ErrStop
	}
	if result, waits := r.holdBack(s); waits {
		return result, phase.ErrStop
	}
	if missing, err := r.checkImage(ctx, s); err != nil {
		return r.problem(ctx, s, err)
	} else if missing != "" {
		s.findings.problem = &Problem{ReasonImageNotFound, missing}
		return ctrl.Result{RequeueAfter: jitter(r.Timing.Problem)}, phase.ErrStop
	}
	return r.choose(ctx, s)
}

// adopt records the machine that has the allocation key of this MaasMachine. MAAS stored the key in the transaction
// that allocated the machine.
func (r *Reconciler) adopt(ctx context.Context, s *scope) (bool, error) {
	held, err := r.holding(ctx, s)
	if err != nil || len(held) == 0 {
		return false, err
	}
	// Of several machines, keep the one with the most progress.
	slices.SortStableFunc(held, func(a, b maas.Machine) int { return cmp.Compare(progress(b), progress(a)) })
	// Record it before the others are released: another provider instance may have recorded one of the others for
	// this MaasMachine.
	if err := r.record(ctx, s, &held[0]); err != nil {
		return false, err
	}
	r.normal(s, "MachineAdopted", fmt.Sprintf("adopted %s, which an earlier reconcile allocated", lifecycle.Describe(&held[0])))
	for i := range held[1:] {
		if err := r.release(ctx, s, &held[1+i], "a second machine allocated for the same MaasMachine"); err != nil {
			return false, err
		}
	}
	r.take(s, &held[0])
	return true, nil
}

func progress(m maas.Machine) int {
	return slices.Index([]maas.Status{maas.StatusAllocated, maas.StatusDeploying, maas.StatusDeployed}, m.Status)
}

// holding lists the machines that are allocated with the key of this MaasMachine, whatever its spec says.
func (r *Reconciler) holding(ctx context.Context, s *scope) ([]maas.Machine, error) {
	list, err := s.identity.Client.ListMachines(ctx, maas.MachineFilter{AgentNames: []string{s.key()}})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(m maas.Machine) bool {
		if s.isOutstanding(m.SystemID) || s.handedOver(m.SystemID) || s.reserved(m.SystemID) {
			return true
		}
		switch lifecycle.Evaluate(lifecycle.Leaving, &m).Action {
		case lifecycle.Gone, lifecycle.Wait:
			return true
		}
		return false
	}), nil
}

// doubtLeft returns how long an allocation with an unknown outcome may still yield a machine.
func (r *Reconciler) doubtLeft(s *scope) time.Duration {
	at := attemptedAt(s.machine)
	if at.IsZero() {
		return 0
	}
	return max(0, r.Timing.Doubt-r.Clock.Since(at))
}

func (r *Reconciler) checkImage(ctx context.Context, s *scope) (string, error) {
	images, err := s.identity.Inventory.Images(ctx)
	if err != nil {
		return "", err
	}
	return missingImage(s.machine.Spec.Image, images), nil
}

// allocate records the attempt, calls MAAS, and records the result. It allocates the picked machine; if picked is
// empty, MAAS picks one.
func (r *Reconciler) allocate(ctx context.Context, s *scope, request placement.Request, picked string) (ctrl.Result, error) {
	if err := r.noteUser(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	notTags, err := s.untagged(ctx, request.NotTags)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	err = r.write(ctx, s, func() error {
		annotate(s.machine, UIDAnnotation, s.uid())
		annotate(s.machine, infrav1.OwnerAnnotation, s.user)
		annotate(s.machine, AttemptAnnotation, r.Clock.Now().UTC().Format(time.RFC3339Nano))
		return nil
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	got, err := s.ask(ctx, request, notTags, picked)
	s.asked = err == nil || placement.HasNone(err) || maas.IsUncertain(err) || ctx.Err() != nil
	if err != nil {
		return r.notAllocated(ctx, s, request, err)
	}
	s.identity.Inventory.Take(got.SystemID)
	r.spread.note(s.machine, got.Zone.Name)
	wrong := request.Mismatches(*got)
	if s.aside(got.SystemID) {
		wrong = append(wrong, "a deployment failed on it a short while ago, or another MaasMachine names it or has its static address there")
	}
	if len(wrong) > 0 {
		return r.refuse(ctx, s, got, wrong)
	}
	if picked == "" && got.Pod != nil {
		// If MAAS is known to have VM hosts, machines are requested by name. Here the VM host may have been added a
		// moment ago.
		r.warn(s, "VirtualMachineAllocated", fmt.Sprintf("%s and a virtual machine on VM host %s, which MAAS may have composed because no physical machine matched; delete the Machine to replace it",
			lifecycle.Describe(got), got.Pod.Name))
	}
	r.normal(s, ReasonAllocated, fmt.Sprintf("allocated machine %s (%s) in zone %s, pool %s", got.Hostname, got.SystemID, got.Zone.Name, got.Pool.Name))
	return ctrl.Result{}, r.record(ctx, s, got)
}

// ask allocates the picked machine. If picked is empty, MAAS picks a machine in the first zone that has one. ask tries
// the zones in order, since MAAS has no preference among them.
func (s *scope) ask(ctx context.Context, request placement.Request, notTags []string, picked string) (*maas.Machine, error) {
	zones := request.Zones
	if len(zones) == 0 || picked != "" {
		zones = []string{""}
	}
	var refusal error
	for _, zone := range zones {
		allocation := request.Allocation(zone)
		allocation.SystemID, allocation.NotTags, allocation.AgentName = picked, notTags, s.key()
		allocation.Comment = s.allocation().Comment(client.ObjectKeyFromObject(s.machine).String())
		callCtx, cancel := context.WithTimeout(ctx, allocateTimeout)
		got, err := s.identity.Client.AllocateMachine(callCtx, allocation)
		cancel()
		if err == nil || !placement.HasNone(err) {
			return got, err
		}
		refusal = err
	}
	return nil, refusal
}

// notAllocated handles a failed allocation. The attempt stays recorded while its outcome is unknown, since MAAS may
// have allocated a machine.
func (r *Reconciler) notAllocated(ctx context.Context, s *scope, request placement.Request, cause error) (ctrl.Result, error) {
	if maas.IsUncertain(cause) || ctx.Err() != nil {
		return r.problem(ctx, s, cause)
	}
	if err := r.forgetAttempt(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if lacksArchitecture(cause) {
		result, err := r.unknownArchitecture(s, request, cause)
		return r.rejected(s, result, err)
	}
	if placement.HasNone(cause) && !s.machine.Spec.IsLXD() {
		result, err := r.noCapacity(s, r.explain(ctx, s, request))
		return r.rejected(s, result, err)
	}
	result, err := r.problem(ctx, s, cause)
	return r.rejected(s, result, err)
}

func (r *Reconciler) forgetAttempt(ctx context.Context, s *scope) error {
	return r.write(ctx, s, func() error {
		delete(s.machine.Annotations, AttemptAnnotation)
		return nil
	})
}

// refuse releases a machine that does not match the request.
func (r *Reconciler) refuse(ctx context.Context, s *scope, got *maas.Machine, wrong []string) (ctrl.Result, error) {
	message := fmt.Sprintf("MAAS allocated machine %s (%s), which does not match the request (%s); it is released", got.Hostname, got.SystemID, strings.Join(wrong, ", "))
	// MAAS would pick this machine again.
	s.identity.SetAside.Add(got.SystemID, r.Clock.Now().Add(2*r.Timing.Settled))
	if err := r.release(ctx, s, got, "it does not match the request"); err != nil {
		return r.problem(ctx, s, err)
	}
	if err := r.forgetAttempt(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	r.warn(s, "MachineDoesNotFit", message)
	return r.noCapacity(s, message)
}

// record writes the allocated machine to the spec of the MaasMachine. From then on it can be found without MAAS.
func (r *Reconciler) record(ctx context.Context, s *scope, m *maas.Machine) error {
	err := r.write(ctx, s, func() error {
		providerID, systemID := formatProviderID(s.machine.Spec, m), m.SystemID
		s.machine.Spec.ProviderID, s.machine.Spec.SystemID = &providerID, &systemID
		annotate(s.machine, UIDAnnotation, s.uid())
		delete(s.machine.Annotations, AttemptAnnotation)
		return nil
	})
	if err != nil {
		return err
	}
	r.take(s, m)
	s.proven = true
	return nil
}
