// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// choose allocates a matching machine, or reports why none matches. By default MAAS picks, and no list is read. The
// controller picks if some machines must not be allocated, if MAAS might compose a virtual machine, or if MAAS had no
// machine a moment ago.
func (r *Reconciler) choose(ctx context.Context, s *scope) (ctrl.Result, error) {
	r.excludeFailed(s)
	if result, err := r.ensureAddress(ctx, s); err != nil {
		return result, err
	}
	request, err := r.request(ctx, s)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	if err := r.occupied(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	mustPick := s.mustPick(ctx)
	var candidates []maas.Machine
	if mustPick || s.waitsForCapacity() {
		if candidates, err = r.candidates(ctx, s, request); lacksArchitecture(err) {
			return r.unknownArchitecture(s, request, err)
		} else if err != nil {
			return r.problem(ctx, s, err)
		}
		if len(candidates) == 0 {
			return r.noCapacity(s, r.explain(ctx, s, request))
		}
		request.Zones = zonesOf(candidates)
	}
	if result, err := r.checkBootstrap(ctx, s); err != nil {
		return result, err
	}
	if !mustPick {
		return r.allocate(ctx, s, request, "")
	}
	picked := s.identity.Inventory.Claim(candidates)
	if picked == "" {
		return r.noCapacity(s, "every machine that fits was taken a moment ago")
	}
	result, err := r.allocate(ctx, s, request, picked)
	if s.systemID() == "" && !s.asked {
		s.identity.Inventory.Unclaim(picked)
	}
	return result, err
}

// mustPick reports whether the controller must request a machine by name. MAAS then also composes no virtual machine if
// that machine is no longer available.
func (s *scope) mustPick(ctx context.Context) bool {
	return s.identity.SetAside.Any() || len(s.quarantined) > 0 || s.contested || s.subnet != nil ||
		s.identity.Inventory.MayCompose(ctx)
}

// candidates returns the Ready machines that match, the best one first.
func (r *Reconciler) candidates(ctx context.Context, s *scope, request placement.Request) ([]maas.Machine, error) {
	ready, err := s.identity.Inventory.Ready(ctx, request.Filter())
	if err != nil && (lacksArchitecture(err) || !placement.HasNone(err)) {
		return nil, err
	}
	return request.Candidates(ready, s.aside), nil
}

// lacksArchitecture reports whether MAAS rejected the architecture of a request. MAAS knows the architectures of its
// images only, and only after a rack controller has synchronized them.
func lacksArchitecture(err error) bool { return maas.FieldMessages(err, "arch") != nil }

func (r *Reconciler) unknownArchitecture(s *scope, request placement.Request, err error) (ctrl.Result, error) {
	return r.stop(s, ReasonImageNotFound, fmt.Sprintf("%v; MAAS has no synchronized image for architecture %s, so it finds no machine with it: "+
		"import such an image, and wait until a rack controller has synchronized it", err, request.Architecture))
}

// zonesOf returns the zones of the machines, in their order, without duplicates.
func zonesOf(machines []maas.Machine) []string {
	var zones []string
	for _, m := range machines {
		if !slices.Contains(zones, m.Zone.Name) {
			zones = append(zones, m.Zone.Name)
		}
	}
	return zones
}

// waitsForCapacity reports whether an earlier reconcile found no machine.
func (s *scope) waitsForCapacity() bool {
	c := meta.FindStatusCondition(s.machine.Status.Conditions, ConditionAllocated)
	return c != nil && (c.Reason == ReasonNoCapacity || c.Reason == ReasonAllocationTimedOut)
}

// aside reports whether a Ready machine must not be allocated now.
func (s *scope) aside(systemID string) bool {
	return s.identity.SetAside.Has(systemID) || s.quarantined[systemID] || s.occupied[systemID] || s.isOutstanding(systemID)
}

// checkBootstrap stops before a machine is allocated that could not be deployed with the current bootstrap data.
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

// noCapacity requeues with a delay that grows with the time already waited.
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

// explain reports how many machines match. It also names a zone, pool or tag that does not exist, since more machines
// would not fix that.
func (r *Reconciler) explain(ctx context.Context, s *scope, request placement.Request) string {
	inventory := s.identity.Inventory
	ready, err := inventory.Survey(ctx)
	text := cmp.Or(request.Explain(ready, s.aside), "every machine that fits was taken a moment ago")
	if err != nil {
		text = "no Ready machine fits"
	}
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

// unknownName returns an empty text when the names could not be read: the counts are sufficient.
func unknownName(err error, kind, name string, known []string) string {
	if err != nil || slices.Contains(known, name) {
		return ""
	}
	return fmt.Sprintf("; MAAS has no %s %q, it has: %s", kind, name, strings.Join(known, ", "))
}
