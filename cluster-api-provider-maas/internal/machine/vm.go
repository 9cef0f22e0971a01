// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// acquireVM gets a virtual machine for a MaasMachine without one. It uses one that an earlier reconcile composed, else
// it composes a new one. Once MAAS has commissioned the virtual machine, it is allocated like any other machine.
//
//	annotation: place ─> compose ─> annotation: system id ─> Commissioning ─> Ready ─> allocate ─> spec.systemID
func (r *Reconciler) acquireVM(ctx context.Context, s *scope) (ctrl.Result, error) {
	place := lxd.PlacementOf(s.machine)
	if place == nil {
		return r.composeVM(ctx, s)
	}
	vm, err := r.findVM(ctx, s, *place)
	switch {
	case err != nil:
		return r.problem(ctx, s, err)
	case vm != nil:
		return r.raiseVM(ctx, s, *place, vm)
	case place.SystemID != "":
		return r.failVM(ctx, s, *place, nil, fmt.Sprintf("the virtual machine %s (%s) on %s is gone: it was deleted in MAAS or in LXD", place.Hostname, place.SystemID, place.Host))
	}
	if left := r.Timing.Compose - r.Clock.Since(place.At); left > 0 {
		s.findings.problem = &Problem{ReasonAllocationUncertain, fmt.Sprintf(
			"MAAS was asked to compose %s on %s and its answer was not received; waiting to see whether it turns up", place.Hostname, place.Host)}
		return ctrl.Result{RequeueAfter: min(left, jitter(r.Timing.Poll/2))}, phase.ErrStop
	}
	return r.composeVM(ctx, s)
}

// findVM returns the virtual machine of a placement; nil when MAAS has none. If its system ID is unknown or not found,
// findVM looks it up by name, since a single answer is not proof.
func (r *Reconciler) findVM(ctx context.Context, s *scope, place lxd.Placement) (*maas.Machine, error) {
	if place.SystemID != "" {
		m, err := s.identity.Inventory.Machine(ctx, place.SystemID, r.Timing.Poll)
		if !maas.IsNotFound(err) {
			return m, err
		}
	}
	return lxd.Find(ctx, s.identity.Client, place.Hostname)
}

// composeVM has MAAS compose a virtual machine on the best host. If MAAS rejects that host, it tries the next one.
func (r *Reconciler) composeVM(ctx context.Context, s *scope) (ctrl.Result, error) {
	if result, waits := r.holdBack(s); waits {
		return result, phase.ErrStop
	}
	if _, _, err := s.identity.Inventory.VMHosts(ctx, r.Timing.Poll); maas.IsGone(err) {
		return r.stop(s, lxd.ReasonHostUnavailable, lxd.NoVMHosts+"; use a pool without lxd, or MAAS 3.8 or older")
	}
	if result, err := r.beforeVM(ctx, s); err != nil {
		return result, err
	}
	vmRequest, err := r.vmRequest(ctx, s)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	hosts, asOf, err := r.hosts(ctx, s, vmRequest)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	var refusals []string
	for {
		place, choice, refusal, err := r.places.Reserve(s.uid(), s.vmName(), r.Clock.Now().UTC(), vmRequest, hosts, asOf,
			func() ([]lxd.Peer, error) { return r.peers(ctx, s) }, r.avoided(s, hosts))
		if err != nil {
			return ctrl.Result{}, err
		}
		if place == nil {
			return r.noHost(ctx, s, refusal, refusals)
		}
		if changed, err := r.reread(ctx, s, &hosts, place.HostID); err != nil {
			r.places.Forget(s.uid())
			return r.problem(ctx, s, err)
		} else if changed {
			continue
		}
		if err := r.keepPlace(ctx, s, *place); err != nil {
			r.places.Forget(s.uid())
			return ctrl.Result{}, err
		}
		vm, err := s.identity.Client.ComposeMachine(ctx, place.HostID, lxd.ComposeRequest(vmRequest, *place, choice.Host))
		if err == nil {
			return r.composedVM(ctx, s, *place, vm.SystemID)
		}
		if !lxd.OneHost(err) {
			return r.notComposed(ctx, s, err)
		}
		refusals = append(refusals, fmt.Sprintf("host %s: %v", place.Host, err))
		hosts = slices.DeleteFunc(hosts, func(h lxd.Host) bool { return h.ID == place.HostID })
	}
}

// beforeVM stops before a virtual machine is composed that could not be deployed with the current image and bootstrap
// data.
func (r *Reconciler) beforeVM(ctx context.Context, s *scope) (ctrl.Result, error) {
	if result, err := r.ensureAddress(ctx, s); err != nil {
		return result, err
	}
	if missing, err := r.checkImage(ctx, s); err != nil {
		return r.problem(ctx, s, err)
	} else if missing != "" {
		return r.stop(s, ReasonImageNotFound, missing)
	}
	if result, err := r.checkBootstrap(ctx, s); err != nil {
		return result, err
	}
	return ctrl.Result{}, r.noteUser(ctx, s)
}

// vmRequest returns the request for a virtual machine, with the allowed zones. With a static address it includes an
// interface on the subnet.
func (r *Reconciler) vmRequest(ctx context.Context, s *scope) (lxd.Request, error) {
	vmRequest := lxd.RequestOf(s.machine.Spec, s.infra)
	vmRequest.Group = group(s.machine)
	if zone := s.zone(); zone != "" {
		vmRequest.Zones = []string{zone}
	} else if s.infra != nil {
		vmRequest.Zones = s.infra.Spec.FailureDomains
	}
	if s.subnet != nil && vmRequest.Interfaces == "" {
		vmRequest.Interfaces = fmt.Sprintf("eth0:subnet=%d", s.subnet.ID)
	}
	return vmRequest, ctx.Err()
}

// hosts returns the hosts on which MAAS can compose, and the time of the list. An error in reading a project matters
// only if the request names a project.
func (r *Reconciler) hosts(ctx context.Context, s *scope, vmRequest lxd.Request) ([]lxd.Host, time.Time, error) {
	listed, asOf, err := s.identity.Inventory.VMHosts(ctx, r.Timing.Poll)
	if err != nil {
		return nil, asOf, err
	}
	hosts := lxd.Available(listed)
	for i := range hosts {
		hosts[i].Project, err = s.identity.Inventory.Project(ctx, hosts[i].ID)
		if err != nil && vmRequest.Project != "" {
			return nil, asOf, err
		}
	}
	return hosts, asOf, nil
}

// peers returns the other MaasMachines of the namespace, with the placements of their virtual machines.
func (r *Reconciler) peers(ctx context.Context, s *scope) ([]lxd.Peer, error) {
	siblings, err := r.siblings(ctx, s)
	if err != nil {
		return nil, err
	}
	peers := make([]lxd.Peer, 0, len(siblings))
	for i := range siblings {
		peer := lxd.Peer{UID: AllocationUID(&siblings[i]), Group: group(&siblings[i]), Leaving: !siblings[i].DeletionTimestamp.IsZero()}
		if place := lxd.PlacementOf(&siblings[i]); place != nil {
			peer.Placement = *place
		}
		peers = append(peers, peer)
	}
	return peers, nil
}

// host returns the host of the virtual machine; empty for other machines.
func (s *scope) host() string {
	if place := lxd.PlacementOf(s.machine); place != nil {
		return place.Host
	}
	return ""
}

// vmName returns the name of the virtual machine of the current attempt.
func (s *scope) vmName() string {
	return lxd.Hostname(s.uid(), s.allocation().ClusterUID, len(failuresOf(s.machine)))
}

// keepPlace records the placement of the virtual machine and the allocation UID.
func (r *Reconciler) keepPlace(ctx context.Context, s *scope, place lxd.Placement) error {
	return r.write(ctx, s, func() error {
		annotate(s.machine, UIDAnnotation, s.uid())
		return lxd.SetPlacement(s.machine, place)
	})
}

// composedVM records the virtual machine that MAAS composed.
func (r *Reconciler) composedVM(ctx context.Context, s *scope, place lxd.Placement, systemID string) (ctrl.Result, error) {
	place.SystemID, place.Composed = systemID, r.Clock.Now().UTC()
	r.places.Composed(s.uid(), place.Composed)
	if err := r.keepPlace(ctx, s, place); err != nil {
		return ctrl.Result{}, err
	}
	r.normal(s, "VMComposed", fmt.Sprintf("MAAS composed %s (%s) on host %s in zone %s", place.Hostname, systemID, place.Host, place.Zone))
	s.findings.problem = &Problem{ReasonVMCommissioning, fmt.Sprintf("the virtual machine %s (%s) on host %s is being commissioned", place.Hostname, systemID, place.Host)}
	return ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}, phase.ErrStop
}

// notComposed handles an error that another host would not fix. The placement stays recorded while the outcome of the
// compose call is unknown.
func (r *Reconciler) notComposed(ctx context.Context, s *scope, cause error) (ctrl.Result, error) {
	if maas.IsUncertain(cause) || ctx.Err() != nil {
		return r.problem(ctx, s, cause)
	}
	if err := r.unplace(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if maas.IsForbidden(cause) {
		cause = fmt.Errorf("%w; virtual machines are composed with the API key of a MAAS administrator only: put one into the Secret with the MAAS credentials", cause)
	}
	result, err := r.problem(ctx, s, cause)
	return r.rejected(s, result, err)
}

func (r *Reconciler) unplace(ctx context.Context, s *scope) error {
	r.places.Forget(s.uid())
	return r.write(ctx, s, func() error {
		delete(s.machine.Annotations, lxd.PlacementAnnotation)
		return nil
	})
}

// noHost reports why there is no host, and requeues with a delay that grows with the time already waited. If MAAS
// rejected the compose calls, the message includes its errors.
func (r *Reconciler) noHost(ctx context.Context, s *scope, refusal lxd.Refusal, refusals []string) (ctrl.Result, error) {
	if err := r.unplace(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if len(refusals) > 0 {
		words := strings.Join(refusals, " | ")
		refusal = lxd.Refusal{Reason: cmp.Or(lxd.ReasonIn(words), ReasonVMCreationFailed), Message: "MAAS composes on none of the hosts that fit: " + words}
	}
	waited := r.Clock.Since(s.since(ConditionAllocated))
	if limit := timeout(s.machine.Spec.Timeouts.Allocate, r.Timing.Allocate); waited > limit {
		refusal.Message = fmt.Sprintf("no virtual machine for more than %s: %s", limit, refusal.Message)
	}
	s.findings.problem = &Problem{refusal.Reason, refusal.Message}
	result := ctrl.Result{RequeueAfter: jitter(min(max(r.Timing.Poll, waited/4), r.Timing.Settled))}
	if len(refusals) == 0 {
		return result, phase.ErrStop
	}
	return r.rejected(s, result, phase.ErrStop)
}

// beforeAllocation holds the states of a virtual machine that is not allocated. In these states the MAAS owner is the
// user that commissioned it.
var beforeAllocation = map[maas.Status]bool{
	maas.StatusNew: true, maas.StatusCommissioning: true, maas.StatusFailedCommissioning: true, maas.StatusReady: true, maas.StatusTesting: true,
	maas.StatusFailedTesting: true, maas.StatusBroken: true, maas.StatusMissing: true, maas.StatusRetired: true,
}

// raiseVM moves a composed virtual machine one step closer to its allocation.
func (r *Reconciler) raiseVM(ctx context.Context, s *scope, place lxd.Placement, vm *maas.Machine) (ctrl.Result, error) {
	if place.SystemID == "" {
		return r.composedVM(ctx, s, place, vm.SystemID)
	}
	switch {
	case !beforeAllocation[vm.Status]:
		return r.takeVM(ctx, s, place, vm)
	case vm.Status == maas.StatusReady:
		if result, waits := r.holdBack(s); waits {
			return result, phase.ErrStop
		}
		return r.allocate(ctx, s, placement.Request{Composed: true}, vm.SystemID)
	case vm.Status == maas.StatusNew, vm.Status == maas.StatusCommissioning, vm.Status == maas.StatusTesting:
		if lasted := r.Clock.Since(place.Composed); lasted > r.Timing.Commission {
			return r.failVM(ctx, s, place, vm, fmt.Sprintf("%s on host %s, for more than %s", lifecycle.Describe(vm), place.Host, r.Timing.Commission))
		}
		s.findings.problem = &Problem{ReasonVMCommissioning, fmt.Sprintf("%s on host %s", lifecycle.Describe(vm), place.Host)}
		return ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}, phase.ErrStop
	}
	words := fmt.Sprintf("%s on host %s", lifecycle.Describe(vm), place.Host)
	if said := lifecycle.Words(vm); said != "" {
		words += fmt.Sprintf(" (MAAS says: %s)", said)
	}
	return r.failVM(ctx, s, place, vm, words)
}

// takeVM records a virtual machine that an earlier reconcile allocated. If another user allocated it, the attempt
// fails.
func (r *Reconciler) takeVM(ctx context.Context, s *scope, place lxd.Placement, vm *maas.Machine) (ctrl.Result, error) {
	held, err := r.holding(ctx, s)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	for i := range held {
		if held[i].SystemID == vm.SystemID {
			return ctrl.Result{}, r.record(ctx, s, &held[i])
		}
	}
	return r.failVM(ctx, s, place, vm, fmt.Sprintf("%s: another user allocated it first", lifecycle.Describe(vm)))
}

// failVM records a failed virtual machine, so that another one can be composed, on another host if possible. The failed
// one is deleted in the background. The virtual machine of the last attempt is not deleted, so that an administrator
// can inspect it.
func (r *Reconciler) failVM(ctx context.Context, s *scope, place lxd.Placement, vm *maas.Machine, words string) (ctrl.Result, error) {
	failures := failuresOf(s.machine)
	if len(failures)+1 >= r.Attempts {
		message := fmt.Sprintf("%s failed, and no other one is composed; the last failure: %s", tries(len(failures)+1), words)
		s.findings.problem = &Problem{ReasonVMCreationFailed, message}
		s.findings.outcome = lifecycle.Outcome{Action: lifecycle.Failed, Reason: ReasonVMCreationFailed, Message: message}
		return ctrl.Result{RequeueAfter: jitter(r.Timing.Settled)}, phase.ErrStop
	}
	failures = append(failures, failure{SystemID: place.SystemID, Hostname: place.Hostname, At: r.Clock.Now().UTC(), Reason: ReasonVMCreationFailed,
		Words: words, Released: vm == nil, Host: place.Host})
	err := r.write(ctx, s, func() error {
		delete(s.machine.Annotations, lxd.PlacementAnnotation)
		delete(s.machine.Annotations, AttemptAnnotation)
		return setFailures(s.machine, failures)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	r.places.Forget(s.uid())
	r.warn(s, ReasonVMCreationFailed, fmt.Sprintf("%s; another virtual machine is made (%d of %d)", words, len(failures)+1, r.Attempts))
	s.findings.problem = &Problem{ReasonVMCreationFailed, words + "; another virtual machine is made"}
	return ctrl.Result{RequeueAfter: time.Second}, phase.ErrStop
}

func tries(n int) string {
	if n == 1 {
		return "1 virtual machine"
	}
	return fmt.Sprintf("%d virtual machines", n)
}
