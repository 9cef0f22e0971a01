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

// lookAgainEvery is the minimum time between two refreshes of a host in MAAS. A refresh lists everything on the host.
const lookAgainEvery = 5 * time.Minute

// staleLook is how long a host counts as unreachable without a new refresh.
const staleLook = 2 * lookAgainEvery

// lookAfterHost reports a problem with the host of a virtual machine: MAAS no longer has it, composes in another
// project of it, or cannot reach it. It does not replace the machine. The health check of its Node decides that, since
// a host may come back.
func (r *Reconciler) lookAfterHost(ctx context.Context, s *scope) (ctrl.Result, error) {
	place := lxd.PlacementOf(s.machine)
	if place == nil || s.systemID() == "" {
		return phase.Done()
	}
	listed, _, err := s.identity.Inventory.VMHosts(ctx, r.Timing.Settled)
	if err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // A failed query of MAAS proves nothing about the machine.
	}
	at := slices.IndexFunc(listed, func(h maas.VMHost) bool { return h.ID == place.HostID })
	switch {
	case at < 0:
		s.findings.host = &Problem{lxd.ReasonHostUnavailable, fmt.Sprintf("MAAS no longer has LXD host %s: register it again, or delete the Machine to replace it on another host", place.Host)}
	case s.observed == nil:
	case r.movedProject(ctx, s, place):
	case s.observed.PowerState == maas.PowerError:
		r.askAbout(ctx, s, listed[at])
	}
	return phase.Done()
}

// movedProject reports whether MAAS now composes in a project of the host other than the project of the virtual
// machine.
func (r *Reconciler) movedProject(ctx context.Context, s *scope, place *lxd.Placement) bool {
	project, err := s.identity.Inventory.Project(ctx, place.HostID)
	if err != nil || place.Project == "" || project == place.Project {
		return false
	}
	s.findings.host = &Problem{lxd.ReasonProjectNotFound, fmt.Sprintf("MAAS now uses LXD project %q on host %s, but the virtual machine is in project %q, where MAAS cannot "+
		"control its power: set the project of the host back in MAAS, or delete the Machine to replace it", project, place.Host, place.Project)}
	return true
}

// askAbout has MAAS refresh a host on which it cannot read the power state of a virtual machine. If the host does not
// answer, askAbout reports that. If it answers, a virtual machine deleted in LXD disappears from MAAS, and the next
// reconcile finds that it is gone.
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
		s.findings.host = &Problem{lxd.ReasonHostUnavailable, fmt.Sprintf("LXD host %s does not answer MAAS (%s): bring it back, or delete the Machine to replace it on another host, "+
			"which the pool's autoRepair does automatically when the Node stays NotReady", host.Name, words)}
	}
}

// machineBelow describes the machine in MAAS on which a host runs; empty if MAAS has none.
func (r *Reconciler) machineBelow(ctx context.Context, s *scope, host maas.VMHost) string {
	if host.Host == nil || host.Host.SystemID == "" {
		return ""
	}
	m, err := s.identity.Inventory.Machine(ctx, host.Host.SystemID, r.Timing.Settled)
	switch {
	case maas.IsNotFound(err):
		return fmt.Sprintf("; MAAS no longer has its machine %s", host.Host.SystemID)
	case err != nil:
		return ""
	}
	return fmt.Sprintf("; its %s, power %s", lifecycle.Describe(m), m.PowerState)
}

// reread reads the chosen host again just before the compose call. The list may be as old as a poll interval, and a
// host that is being drained must get no new virtual machines. It reports whether the host must be chosen again.
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

// avoided returns the hosts of last resort: those on which an attempt failed, and those that recently did not answer.
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

// looks holds the results of host refreshes, so that each host is refreshed once for all its virtual machines. A
// restart loses the state, which costs one extra call.
type looks struct {
	mu     sync.Mutex
	byHost map[int]look
}

type look struct {
	at time.Time
	// words is the error if MAAS cannot reach the host; empty if it can.
	words string
}

func newLooks() *looks { return &looks{byHost: map[int]look{}} }

// due reports whether to refresh the host now, and if so, records the refresh.
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

// words returns the last known error in reaching a host; empty if MAAS reaches it.
func (l *looks) words(host int, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.byHost[host]; now.Sub(last.at) < staleLook {
		return last.words
	}
	return ""
}
