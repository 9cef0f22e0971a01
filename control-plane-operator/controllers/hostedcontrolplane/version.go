package hostedcontrolplane

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

// maxHistory is how many versions are remembered.
const maxHistory = 100

// setVersions records which version the control plane runs, wants, and ran before. This distribution has nothing in the
// guest that carries a version of its own, so the guest's version is that of the control plane.
func setVersions(next *hyperv1.HostedControlPlaneStatus, s *scope, o observed, now time.Time) {
	if s.release == nil || s.releaseErr != nil {
		return
	}
	wanted := configv1.Release{Version: s.release.Version(), Image: controlPlaneRelease(s.hcp)}
	done := len(o.components) > 0 && len(unfinished(o.components, wanted.Version)) == 0

	next.ControlPlaneVersion.Desired = wanted
	next.ControlPlaneVersion.ObservedGeneration = max(s.hcp.Generation, 1)
	next.ControlPlaneVersion.History = advance(next.ControlPlaneVersion.History, wanted, done, now)

	version := hyperv1.ClusterVersionStatus{}
	if next.VersionStatus != nil {
		version = *next.VersionStatus.DeepCopy()
	}
	version.Desired = wanted
	version.ObservedGeneration = s.hcp.Generation
	version.History = guestHistory(next.ControlPlaneVersion.History)
	next.VersionStatus = &version

	if next.ReleaseImage != wanted.Image || next.LastReleaseImageTransitionTime == nil {
		next.LastReleaseImageTransitionTime = &metav1.Time{Time: now}
	}
	next.ReleaseImage = wanted.Image
	if done {
		next.Version = wanted.Version
	}
}

// unfinished lists the components that do not run version yet.
func unfinished(components []hyperv1.ControlPlaneComponent, version string) []string {
	var names []string
	for i := range components {
		if !component.Done(&components[i], version) {
			names = append(names, components[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// advance puts wanted at the head of history and completes it when it is done. An entry that was completed stays so:
// a pod that restarts later does not undo an update.
func advance(history []hyperv1.ControlPlaneUpdateHistory, wanted configv1.Release, done bool, now time.Time) []hyperv1.ControlPlaneUpdateHistory {
	history = slices.Clone(history)
	if len(history) == 0 || history[0].Version != wanted.Version || history[0].Image != wanted.Image {
		entry := hyperv1.ControlPlaneUpdateHistory{
			State: configv1.PartialUpdate, StartedTime: metav1.Time{Time: now}, Version: wanted.Version, Image: wanted.Image,
		}
		history = append([]hyperv1.ControlPlaneUpdateHistory{entry}, history...)
		// A component list that still belongs to the old version must not complete the new one in the same pass.
		done = false
	}
	if done && history[0].State != configv1.CompletedUpdate {
		history[0].State = configv1.CompletedUpdate
		history[0].CompletionTime = metav1.Time{Time: now}
	}
	return history[:min(len(history), maxHistory)]
}

func guestHistory(history []hyperv1.ControlPlaneUpdateHistory) []configv1.UpdateHistory {
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
