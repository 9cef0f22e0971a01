// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/control-plane-operator/guestcomponents"
	"github.com/openshift/hypershift/support/component"
)

// maxHistory is the maximum number of versions in the history.
const maxHistory = 100

// setVersions records the current, desired and previous versions of the control plane and its guest. This distribution
// has no guest object with a version of its own, so the version of each side is the version of its components.
func setVersions(next *hyperv1.HostedControlPlaneStatus, s *scope, o observed, now time.Time) {
	if s.release == nil || s.guestRelease == nil || s.releaseErr != nil {
		return
	}
	controlPlane := configv1.Release{Version: s.release.Version(), Image: controlPlaneRelease(s.applied())}
	hosting, running := unfinished(s, o.components)

	next.ControlPlaneVersion.Desired = controlPlane
	next.ControlPlaneVersion.ObservedGeneration = max(s.hcp.Generation, 1)
	next.ControlPlaneVersion.History = advance(next.ControlPlaneVersion.History, controlPlane, len(hosting) == 0, now)

	guest := configv1.Release{Version: s.guestRelease.Version(), Image: s.applied().Spec.ReleaseImage}
	done := len(hosting)+len(running) == 0
	version := hyperv1.ClusterVersionStatus{}
	if next.VersionStatus != nil {
		version = *next.VersionStatus
	}
	version.Desired = guest
	version.ObservedGeneration = s.hcp.Generation
	version.History = toGuest(advance(fromGuest(version.History), guest, done, now))
	next.VersionStatus = &version

	if next.ReleaseImage != guest.Image || next.LastReleaseImageTransitionTime == nil {
		next.LastReleaseImageTransitionTime = &metav1.Time{Time: now}
	}
	next.ReleaseImage = guest.Image
	if done {
		next.Version = guest.Version
	}
}

// unfinished returns the components of the control plane and of the guest that do not run their desired version yet,
// sorted. The API server and the guest's components count as unfinished until they are reported.
func unfinished(s *scope, components []hyperv1.ControlPlaneComponent) (hosting, running []string) {
	running = guestcomponents.Wanted(s.applied())
	onNodes := guestcomponents.OnNodes()
	for i := range components {
		name := components[i].Name
		switch {
		case !slices.Contains(onNodes, name):
			if !component.Done(&components[i], s.release.Version(), s.hcp.Generation) {
				hosting = append(hosting, name)
			}
		case component.Done(&components[i], s.guestRelease.Version(), s.hcp.Generation):
			running = slices.DeleteFunc(running, func(n string) bool { return n == name })
		}
	}
	isAPIServer := func(c hyperv1.ControlPlaneComponent) bool { return c.Name == kubeapiserver.Name }
	if !slices.ContainsFunc(components, isAPIServer) {
		hosting = append(hosting, kubeapiserver.Name)
	}
	slices.Sort(hosting)
	return hosting, running
}

// advance adds the desired version to the head of the history, and completes the entry when its rollout is complete. A
// completed entry remains completed: a pod that restarts later does not undo an update.
func advance(history []hyperv1.ControlPlaneUpdateHistory, wanted configv1.Release, done bool, now time.Time) []hyperv1.ControlPlaneUpdateHistory {
	history = slices.Clone(history)
	if len(history) == 0 || history[0].Version != wanted.Version || history[0].Image != wanted.Image {
		entry := hyperv1.ControlPlaneUpdateHistory{
			State: configv1.PartialUpdate, StartedTime: metav1.Time{Time: now}, Version: wanted.Version, Image: wanted.Image,
		}
		history = append([]hyperv1.ControlPlaneUpdateHistory{entry}, history...)
		// A component list that still describes the old version must not complete the new one in the same reconcile.
		done = false
	}
	if done && history[0].State != configv1.CompletedUpdate {
		history[0].State = configv1.CompletedUpdate
		history[0].CompletionTime = metav1.Time{Time: now}
	}
	return history[:min(len(history), maxHistory)]
}

func toGuest(history []hyperv1.ControlPlaneUpdateHistory) []configv1.UpdateHistory {
	var guest []configv1.UpdateHistory
	for _, h := range history {
		entry := configv1.UpdateHistory{State: h.State, StartedTime: h.StartedTime, Version: h.Version, Image: h.Image}
		if !h.CompletionTime.IsZero() {
			completed := h.CompletionTime
			entry.CompletionTime = &completed
		}
		guest = append(guest, entry)
	}
	return guest
}

func fromGuest(guest []configv1.UpdateHistory) []hyperv1.ControlPlaneUpdateHistory {
	var history []hyperv1.ControlPlaneUpdateHistory
	for _, h := range guest {
		entry := hyperv1.ControlPlaneUpdateHistory{State: h.State, StartedTime: h.StartedTime, Version: h.Version, Image: h.Image}
		if h.CompletionTime != nil {
			entry.CompletionTime = *h.CompletionTime
		}
		history = append(history, entry)
	}
	return history
}
