// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// maxHistory limits the number of entries in the version history.
const maxHistory = 100

// versionStatus returns the version status that the control plane reports. If it reports none yet, or its operator does
// not record a history, the status follows the images that it runs.
func versionStatus(s *scope) *hyperv1.ClusterVersionStatus {
	if s.HCP != nil && s.HCP.Status.VersionStatus != nil {
		return s.HCP.Status.VersionStatus
	}
	if s.images.release == "" {
		return s.HC.Status.Version
	}
	return followImages(s.HC.Status.Version, s.HC.Generation, s.images.release, s.HCP, s.Now)
}

func followImages(last *hyperv1.ClusterVersionStatus, generation int64, image string, hcp *hyperv1.HostedControlPlane, now time.Time) *hyperv1.ClusterVersionStatus {
	version := last.DeepCopy()
	if version == nil {
		version = &hyperv1.ClusterVersionStatus{}
	}
	version.ObservedGeneration = generation
	version.Desired.Image = image
	if len(version.History) == 0 || version.History[0].Image != image {
		entry := configv1.UpdateHistory{State: configv1.PartialUpdate, StartedTime: metav1.NewTime(now), Image: image}
		version.History = append([]configv1.UpdateHistory{entry}, version.History...)
	}
	if len(version.History) > maxHistory {
		version.History = version.History[:maxHistory]
	}
	current := &version.History[0]
	if current.State == configv1.PartialUpdate && hcp != nil && hcp.Status.ReleaseImage == image && hcp.Status.LastReleaseImageTransitionTime != nil {
		current.State = configv1.CompletedUpdate
		current.Version = hcp.Status.Version
		current.CompletionTime = hcp.Status.LastReleaseImageTransitionTime
	}
	version.Desired.Version = current.Version
	return version
}
