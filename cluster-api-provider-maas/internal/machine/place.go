// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/staticip"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// place assigns the static address to the machine. This must be done before the deployment: MAAS permits no link change
// while a machine is installed or runs. It first adds the address, then removes automatic links. An error thus leaves
// the machine unchanged, and an interrupted reconcile leaves it with a network.
//
//	annotation: address ─> allocate ─> annotation: machine ─> link_subnet STATIC ─> unlink_subnet AUTO ─> deploy
func (r *Reconciler) place(ctx context.Context, s *scope) (placed bool, result ctrl.Result, err error) {
	if result, err := r.ensureAddress(ctx, s); err != nil || s.subnet == nil {
		return err == nil, result, err
	}
	ip := addressOf(s.machine).IP
	nic, link := staticip.Find(s.observed, ip)
	if nic == nil {
		nic = staticip.Interface(s.observed, s.subnet)
	}
	if nic == nil {
		// Release this machine: another machine may have such an interface.
		result, err := r.giveUp(ctx, s, lifecycle.Outcome{Action: lifecycle.Retry, Reason: ReasonInterfaceNotFound, Message: fmt.Sprintf(
			"machine %s (%s) has no enabled interface on subnet %s or its VLAN", s.observed.Hostname, s.observed.SystemID, s.subnet.CIDR)})
		return false, result, err
	}
	automatic := staticip.Automatic(nic, s.subnet.ID)
	if err := r.noteMachine(ctx, s, automatic); err != nil {
		return false, ctrl.Result{}, err
	}
	if link == nil {
		if result, err := r.linkAddress(ctx, s, nic.ID, ip); err != nil {
			return false, result, err
		}
		r.normal(s, ReasonStaticIPAssigned, fmt.Sprintf("machine %s (%s) has %s on %s", s.observed.Hostname, s.observed.SystemID, ip, nic.Name))
	}
	for _, other := range automatic {
		if err := r.unlink(ctx, s, nic.ID, other.ID); err != nil {
			result, err := r.problem(ctx, s, needsAdministrator(err))
			return false, result, err
		}
	}
	return true, ctrl.Result{}, nil
}

// noteMachine records the machine that gets the address, and the mode of the link that the address replaces.
func (r *Reconciler) noteMachine(ctx context.Context, s *scope, automatic []maas.Link) error {
	a := addressOf(s.machine)
	if a.SystemID == s.observed.SystemID {
		return nil
	}
	a.SystemID, a.Replaced = s.observed.SystemID, ""
	if len(automatic) > 0 {
		a.Replaced = automatic[0].Mode
	}
	return r.keepAddress(ctx, s, a)
}

// linkAddress adds the address to an interface. If the spec has a gateway, which equals the gateway of the subnet, it
// becomes the default gateway of the machine.
func (r *Reconciler) linkAddress(ctx context.Context, s *scope, nicID int, ip string) (ctrl.Result, error) {
	nic, err := s.identity.Client.LinkSubnet(ctx, s.observed.SystemID, nicID, maas.LinkRequest{
		Mode: "STATIC", Subnet: strconv.Itoa(s.subnet.ID), IPAddress: ip, DefaultGateway: s.machine.Spec.StaticIP.Gateway != "",
	})
	if err == nil {
		r.takeInterface(s, nic)
		return ctrl.Result{}, nil
	}
	s.identity.Inventory.Forget(s.observed.SystemID)
	if refusesAddress(err, ip) {
		return r.addressRefused(ctx, s, ip, err)
	}
	return r.problem(ctx, s, needsAdministrator(err))
}

// addressInUse is the message of MAAS, with status 404 and without the address, when the address was assigned
// concurrently.
const addressInUse = "IP address is already in use"

// refusesAddress reports whether MAAS rejected the address and not the call: the address is in use or in a dynamic
// range.
func refusesAddress(err error, ip string) bool {
	var e *maas.Error
	if !errors.As(err, &e) {
		return false
	}
	spoken := e.StatusCode == http.StatusNotFound || e.StatusCode == http.StatusConflict
	return e.Fields["ip_address"] != nil || spoken && (strings.Contains(e.Message, ip) || strings.Contains(e.Message, addressInUse))
}

// addressRefused picks another address if the spec has a range. Without a range the machine stays allocated: MAAS would
// reject the address for any other machine too. The reconcile continues once the address is free.
func (r *Reconciler) addressRefused(ctx context.Context, s *scope, ip string, cause error) (ctrl.Result, error) {
	fresh, err := s.identity.Inventory.Refresh(ctx, s.observed.SystemID)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	if _, link := staticip.Find(fresh, ip); link != nil {
		// An earlier call linked the address, and its answer was lost.
		return ctrl.Result{RequeueAfter: time.Second}, phase.ErrStop
	}
	s.identity.Inventory.ForgetHeldAddresses(s.subnet.ID)
	if s.machine.Spec.StaticIP.Range == nil {
		return r.stop(s, staticip.ReasonInUse, fmt.Sprintf("%v; free %s in MAAS, or make another machine or template with another address", cause, ip))
	}
	r.claims.refuse(s.machine.Namespace, ip, r.Clock.Now())
	if err := r.keepAddress(ctx, s, address{}); err != nil {
		return ctrl.Result{}, err
	}
	s.findings.problem = &Problem{staticip.ReasonInUse, fmt.Sprintf("%v; another address of the range is picked", cause)}
	return ctrl.Result{RequeueAfter: time.Second}, phase.ErrStop
}

func (r *Reconciler) unlink(ctx context.Context, s *scope, nicID, linkID int) error {
	nic, err := s.identity.Client.UnlinkSubnet(ctx, s.observed.SystemID, nicID, linkID)
	if err != nil {
		s.identity.Inventory.Forget(s.observed.SystemID)
		return err
	}
	r.takeInterface(s, nic)
	return nil
}

// takeInterface stores an interface that MAAS returned. It copies the observed machine, which is shared.
func (r *Reconciler) takeInterface(s *scope, nic maas.Interface) {
	m := *s.observed
	m.Interfaces = slices.Clone(m.Interfaces)
	for i := range m.Interfaces {
		if m.Interfaces[i].ID == nic.ID {
			m.Interfaces[i] = nic
		}
	}
	r.take(s, &m)
}

// needsAdministrator adds the most likely cause to a permission error.
func needsAdministrator(err error) error {
	if !maas.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w; staticIP needs the API key of a MAAS administrator in the Secret with the MAAS credentials: only an administrator may change links in MAAS", err)
}
