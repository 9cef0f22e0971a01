package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// choose allocates when some Ready machine fits, and else says why none does. Asking first keeps a MAAS with VM hosts from
// composing a machine of its own making.
func (r *Reconciler) choose(ctx context.Context, s *scope) (ctrl.Result, error) {
	r.heed(s)
	if result, err := r.ensureAddress(ctx, s); err != nil {
		return result, err
	}
	request, err := r.request(ctx, s)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	ready, err := s.identity.Inventory.Ready(ctx)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	if s.occupied, err = r.occupied(ctx, s, ready); err != nil {
		return ctrl.Result{}, err
	}
	candidates := request.Candidates(ready, s.aside)
	if len(candidates) == 0 {
		return r.noCapacity(s, r.explain(ctx, s, request, ready))
	}
	if result, err := r.checkBootstrap(ctx, s); err != nil {
		return result, err
	}
	allocation := request.Allocation()
	if s.identity.SetAside.Any() || len(s.quarantined) > 0 || anyTagged(ready) || len(s.occupied) > 0 || s.subnet != nil || len(request.Zones) > 1 {
		// MAAS would pick the cheapest, which may be one that is set aside, even if it was not Ready a moment ago, or one without
		// an interface on the subnet of a static address, and it does not spread machines over zones.
		if allocation.SystemID = s.identity.Inventory.Claim(candidates); allocation.SystemID == "" {
			return r.noCapacity(s, "every machine that fits was taken a moment ago")
		}
		r.spread.note(s.machine, zoneAmong(candidates, allocation.SystemID))
	}
	return r.allocate(ctx, s, request, allocation)
}

// aside tells that a machine must not be taken now, although it is Ready.
func (s *scope) aside(systemID string) bool {
	return s.identity.SetAside.Has(systemID) || s.quarantined[systemID] || s.occupied[systemID] || s.isOutstanding(systemID)
}

// checkBootstrap stops before a machine is taken that could not be deployed with what there is.
func (r *Reconciler) checkBootstrap(ctx context.Context, s *scope) (ctrl.Result, error) {
	data, err := r.bootstrap(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if data == nil {
		return r.waitForBootstrap(s)
	}
	images, err := s.identity.Inventory.Images(ctx)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	if why := refusesFormat(s.machine.Spec.Image, formatOf(data), images); why != "" {
		return r.stop(s, ReasonFormatNotSupported, why)
	}
	return ctrl.Result{}, nil
}

// noCapacity waits the longer, the longer it has waited.
func (r *Reconciler) noCapacity(s *scope, message string) (ctrl.Result, error) {
	r.spread.note(s.machine, "")
	waited := r.Clock.Since(s.since(ConditionAllocated))
	reason := ReasonNoCapacity
	if limit := timeout(s.machine.Spec.Timeouts.Allocate, r.Timing.Allocate); waited > limit {
		reason = ReasonAllocationTimedOut
		message = fmt.Sprintf("no machine for more than %s: %s", limit, message)
	}
	s.findings.problem = &Problem{reason, message}
	after := min(max(r.Timing.Poll, waited/4), r.Timing.Settled)
	return ctrl.Result{RequeueAfter: jitter(after)}, phase.ErrStop
}

// explain adds to the counts when a zone, pool or tag does not exist at all, which more machines would not mend.
func (r *Reconciler) explain(ctx context.Context, s *scope, request placement.Request, ready []maas.Machine) string {
	text := request.Explain(ready, s.aside)
	inventory := s.identity.Inventory
	if len(request.Zones) > 0 {
		zones, err := inventory.Zones(ctx, zonesAge)
		for _, zone := range request.Zones {
			text += unknownName(err, "zone", zone, names(zones, func(z maas.Zone) string { return z.Name }))
		}
	}
	if request.Pool != "" {
		pools, err := inventory.Pools(ctx)
		text += unknownName(err, "resource pool", request.Pool, names(pools, func(p maas.Pool) string { return p.Name }))
	}
	if len(request.Tags) > 0 {
		tags, err := inventory.Tags(ctx)
		for _, tag := range request.Tags {
			text += unknownName(err, "tag", tag, names(tags, func(t maas.Tag) string { return t.Name }))
		}
	}
	return text
}

func names[T any](list []T, name func(T) string) []string {
	var all []string
	for _, item := range list {
		all = append(all, name(item))
	}
	slices.Sort(all)
	return all
}

// unknownName adds nothing when the names could not be read: the counts say enough.
func unknownName(err error, kind, name string, known []string) string {
	if err != nil || slices.Contains(known, name) {
		return ""
	}
	return fmt.Sprintf("; MAAS has no %s %q, it has: %s", kind, name, strings.Join(known, ", "))
}
