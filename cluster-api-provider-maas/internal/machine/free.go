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

// linksChange holds the machine states in which MAAS permits changes of links.
var linksChange = map[maas.Status]bool{
	maas.StatusNew: true, maas.StatusReady: true, maas.StatusFailedTesting: true, maas.StatusAllocated: true, maas.StatusBroken: true,
}

// free unassigns the static address of a released machine and restores the previous link. A release does neither: MAAS
// clears automatic addresses only. It is not possible before the release, since MAAS permits no link change on a
// running machine.
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
		// Another user allocated the machine first, or took it out of service. That state may last indefinitely, so
		// do not wait for its end.
		r.warnKept(s, a, fmt.Sprintf("MAAS cannot change links of a machine that is %s", m.StatusName))
		return ctrl.Result{}, nil
	}
	if err := r.putBack(ctx, s, a, *nic, *link); err != nil {
		return r.problem(ctx, s, needsAdministrator(err))
	}
	r.normal(s, "StaticIPReleased", fmt.Sprintf("unassigned %s from machine %s (%s)", a.IP, m.Hostname, m.SystemID))
	return ctrl.Result{}, nil
}

// putBack restores the replaced link before it removes the static one, so that the machine always has a network.
func (r *Reconciler) putBack(ctx context.Context, s *scope, a address, nic maas.Interface, link maas.Link) error {
	if a.Replaced != "" && link.Subnet != nil && len(staticip.Automatic(&nic, link.Subnet.ID)) == 0 {
		restored, err := s.identity.Client.LinkSubnet(ctx, a.SystemID, nic.ID, maas.LinkRequest{
			Mode: strings.ToUpper(a.Replaced), Subnet: strconv.Itoa(link.Subnet.ID)})
		switch {
		case err == nil:
			r.takeInterface(s, restored)
		case maas.IsInvalid(err):
			// The network was changed since. That must not prevent unassigning the address.
			r.warn(s, "LinkNotRestored", err.Error())
		default:
			s.identity.Inventory.Forget(a.SystemID)
			return err
		}
	}
	return r.unlink(ctx, s, nic.ID, link.ID)
}

func (r *Reconciler) warnKept(s *scope, a address, why string) {
	r.warn(s, "StaticIPKept", fmt.Sprintf("machine %s was released but keeps the static address %s: %s. Remove the address in MAAS when possible", a.SystemID, a.IP, why))
}

// occupied records the machines that must not be allocated because of a sibling. Such a machine is allocated to the
// sibling, or has or may still get its static address. A machine may have been released outside the controller. The
// Node of the sibling then still exists, and a second Node of the same name could not join.
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
