// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/staticip"
	"github.com/openshift/hypershift/support/maas"
)

// linksChange are the states in which MAAS changes links.
var linksChange = map[maas.Status]bool{
	maas.StatusNew: true, maas.StatusReady: true, maas.StatusFailedTesting: true, maas.StatusAllocated: true, maas.StatusBroken: true,
}

// free takes the static address off a machine that was given back, and puts back what was there before. A release does neither:
// MAAS clears automatic addresses only. It can't be done before the release, since MAAS changes no link of a machine that runs.
func (r *Reconciler) free(ctx context.Context, s *scope) (ctrl.Result, error) {
	a, m := addressOf(s.machine), s.observed
	if a.SystemID == "" || a.SystemID != s.systemID() {
		return ctrl.Result{}, nil
	}
	if m == nil {
		if s.foreign {
			r.warnKept(s, a, "another MAAS user has it")
		}
		return ctrl.Result{}, nil
	}
	nic, link := staticip.Find(m, a.IP)
	if link == nil {
		return ctrl.Result{}, nil
	}
	if !linksChange[m.Status] {
		// Somebody else was faster, or took it out of use. Waiting for that to end may take for ever.
		r.warnKept(s, a, fmt.Sprintf("MAAS changes no link of a machine that is %s", m.StatusName))
		return ctrl.Result{}, nil
	}
	if err := r.putBack(ctx, s, a, *nic, *link); err != nil {
		return r.problem(ctx, s, needsAdministrator(err))
	}
	r.normal(s, "StaticIPReleased", fmt.Sprintf("took %s off machine %s (%s)", a.IP, m.Hostname, m.SystemID))
	return ctrl.Result{}, nil
}

// putBack restores the link that made room, before the static one goes: the machine always has a network.
func (r *Reconciler) putBack(ctx context.Context, s *scope, a address, nic maas.Interface, link maas.Link) error {
	if a.Replaced != "" && link.Subnet != nil && len(staticip.Automatic(&nic, link.Subnet.ID)) == 0 {
		restored, err := s.identity.Client.LinkSubnet(ctx, a.SystemID, nic.ID, maas.LinkRequest{
			Mode: strings.ToUpper(a.Replaced), Subnet: strconv.Itoa(link.Subnet.ID)})
		switch {
		case err == nil:
			r.takeInterface(s, restored)
		case maas.IsInvalid(err):
			// Somebody changed the network since. That must not keep the address from being free.
			r.warn(s, "LinkNotRestored", err.Error())
		default:
			s.identity.Inventory.Forget(a.SystemID)
			return err
		}
	}
	return r.unlink(ctx, s, nic.ID, link.ID)
}

func (r *Reconciler) warnKept(s *scope, a address, why string) {
	r.warn(s, "StaticIPKept", fmt.Sprintf("machine %s was given back, and keeps the static address %s: %s. Take it off in MAAS when it can be", a.SystemID, a.IP, why))
}

// occupied notes which machines nobody should get on account of a sibling: they still carry, or may carry, its static address, or the
// sibling has them. Where they were taken away from it behind our back, its Node is still there, and a second one of the same name
// could not join.
func (r *Reconciler) occupied(ctx context.Context, s *scope) error {
	siblings, err := r.siblings(ctx, s)
	if err != nil {
		return err
	}
	s.occupied, s.contested = map[string]bool{}, false
	for id, record := range handover.Records.Of(s.infra) {
		s.occupied[id], s.contested = true, s.contested || record.Address != ""
	}
	for i := range siblings {
		sibling := &siblings[i]
		if id := deref(sibling.Spec.SystemID); id != "" && sibling.Annotations[KeptAnnotation] != "" {
			s.occupied[id], s.contested = true, true
		}
		if id := addressOf(sibling).SystemID; id != "" {
			s.occupied[id], s.contested = true, true
		}
		for _, f := range failuresOf(sibling) {
			if !f.Released {
				s.occupied[f.SystemID], s.contested = true, true
			}
		}
		if id := sibling.Spec.SystemID; id != nil && sibling.DeletionTimestamp.IsZero() && deref(sibling.Status.Initialization.Provisioned) {
			s.occupied[*id] = true
			s.contested = s.contested || noticedLoss(sibling)
		}
	}
	return nil
}
