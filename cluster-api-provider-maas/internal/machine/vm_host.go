// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// lookAgainEvery is how often MAAS is asked to look at a host anew: that lists all that is on it.
const lookAgainEvery = 5 * time.Minute

// staleLook is how long it is believed that a host does not answer about which nobody asks any more.
const staleLook = 2 * lookAgainEvery

// lookAfterHost tells what is wrong with the host of a virtual machine that was made: MAAS has it no more, composes in another project there,
// or can't reach it. Whether the machine is to be replaced is for the health check of its Node to say: a host may come back.
func (r *Reconciler) lookAfterHost(ctx context.Context, s *scope) (ctrl.Result, error) {
	place := lxd.PlacementOf(s.machine)
	if place == nil || s.systemID() == "" {
		return phase.Done()
	}
	listed, _, err := s.identity.Inventory.VMHosts(ctx, r.Timing.Settled)
	if err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // What MAAS does not tell now says nothing about the machine.
	}
	at := slices.IndexFunc(listed, func(h maas.VMHost) bool { return h.ID == place.HostID })
	switch {
	case at < 0:
		s.findings.host = &Problem{lxd.ReasonHostUnavailable, fmt.Sprintf("MAAS does not have LXD host %s any more: register it again, or delete the Machine to have another one made elsewhere", place.Host)}
	case s.observed == nil:
	case r.movedProject(ctx, s, place):
	case s.observed.PowerState == maas.PowerError:
		r.askAbout(ctx, s, listed[at])
	}
	return phase.Done()
}

// movedProject tells that MAAS composes in another project of the host than that which the virtual machine is in.
func (r *Reconciler) movedProject(ctx context.Context, s *scope, place *lxd.Placement) bool {
	project, err := s.identity.Inventory.Project(ctx, place.HostID)
	if err != nil || place.Project == "" || project == place.Project {
		return false
	}
	s.findings.host = &Problem{lxd.ReasonProjectNotFound, fmt.Sprintf("MAAS composes in LXD project %q on host %s by now, and the virtual machine is in %q, where MAAS can't "+
		"switch it: set the project of the host back in MAAS, or delete the Machine to have another one made", project, place.Host, place.Project)}
	return true
}

// askAbout has MAAS look anew at a host on which it can't read the power of a virtual machine. Either the host does not answer, or it does:
// then a virtual machine that somebody deleted in LXD leaves MAAS's list, and the next pass finds that it is gone.
func (r *Reconciler) askAbout(ctx context.Context, s *scope, host maas.VMHost) {
	if r.looks.due(host.ID, r.Clock.Now()) {
		_, err := s.identity.Client.RefreshVMHost(ctx, host.ID)
		words := ""
		if maas.IsUnavailable(err) {
			words = err.Error() + r.machineBelow(ctx, s, host)
		}
		r.looks.note(host.ID, words)
		s.identity.Inventory.Forget(s.observed.SystemID)
	}
	if words := r.looks.words(host.ID, r.Clock.Now()); words != "" {
		s.findings.host = &Problem{lxd.ReasonHostUnavailable, fmt.Sprintf("LXD host %s does not answer MAAS (%s): bring it back, or delete the Machine to have another one made elsewhere, "+
			"which the pool's autoRepair does by itself when the Node stays NotReady", host.Name, words)}
	}
}

// machineBelow tells of the machine on which a host runs, where MAAS has that.
func (r *Reconciler) machineBelow(ctx context.Context, s *scope, host maas.VMHost) string {
	if host.Host == nil || host.Host.SystemID == "" {
		return ""
	}
	m, err := s.identity.Inventory.Machine(ctx, host.Host.SystemID, r.Timing.Settled)
	switch {
	case maas.IsNotFound(err):
		return fmt.Sprintf("; MAAS does not have its machine %s any more", host.Host.SystemID)
	case err != nil:
		return ""
	}
	return fmt.Sprintf("; its %s, power %s", lifecycle.Describe(m), m.PowerState)
}

// reread reads the chosen host once more, right before it is to compose: the list may be as old as a poll, and a host that is being drained
// takes nothing more. It tells whether to choose anew.
func (r *Reconciler) reread(ctx context.Context, s *scope, hosts *[]lxd.Host, id int) (bool, error) {
	now, err := s.identity.Client.GetVMHost(ctx, id)
	if maas.IsNotFound(err) {
		*hosts = slices.DeleteFunc(*hosts, func(h lxd.Host) bool { return h.ID == id })
		return true, nil
	}
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(*hosts, func(h lxd.Host) bool { return h.ID == id })
	if slices.Equal((*hosts)[at].Tags, now.Tags) {
		return false, nil
	}
	(*hosts)[at].Tags = now.Tags
	return true, nil
}

// avoided are the hosts that are taken last: those on which a try failed, and those that did not answer a short while ago.
func (r *Reconciler) avoided(s *scope, hosts []lxd.Host) map[string]bool {
	avoided := map[string]bool{}
	for _, f := range failuresOf(s.machine) {
		avoided[f.Host] = true
	}
	for _, h := range hosts {
		if r.looks.words(h.ID, r.Clock.Now()) != "" {
			avoided[h.Name] = true
		}
	}
	return avoided
}

// looks remember how it went when MAAS looked at a host anew, so that it does so once for all virtual machines on it. A restart forgets them,
// which costs one call more.
type looks struct {
	mu     sync.Mutex
	byHost map[int]look
}

type look struct {
	at time.Time
	// words are why MAAS can't reach the host; empty when it can.
	words string
}

func newLooks() *looks { return &looks{byHost: map[int]look{}} }

// due tells whether to look now, and if so notes that somebody does.
func (l *looks) due(host int, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.byHost[host]
	if known && now.Sub(last.at) < lookAgainEvery {
		return false
	}
	l.byHost[host] = look{now, last.words}
	return true
}

func (l *looks) note(host int, words string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byHost[host] = look{l.byHost[host].at, words}
}

// words are why MAAS can't reach a host, as far as that is known; empty when it can.
func (l *looks) words(host int, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.byHost[host]; now.Sub(last.at) < staleLook {
		return last.words
	}
	return ""
}
