// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// pending describes a rollout that the control plane does not report yet, so that a change of the release is visible in
// the same reconcile. It is empty if the control plane reports it completely.
func (s *scope) pending() string {
	switch {
	case s.HCP == nil, !s.HC.DeletionTimestamp.IsZero():
		return ""
	case s.Release == nil:
		return s.untaken()
	}
	status := s.HCP.Status
	if why := s.unreported(status.ControlPlaneVersion.Desired, s.images.running(), s.Release); why != "" || status.VersionStatus == nil {
		return why
	}
	return s.unreported(status.VersionStatus.Desired, s.images.release, s.wanted)
}

// unreported compares the reported release with the requested one. Operators of an OpenShift payload may write its
// image differently, so for them only the version counts.
func (s *scope) unreported(reported configv1.Release, image string, payload *releaseinfo.ReleaseImage) string {
	if reported.Image == "" || payload == nil {
		return ""
	}
	sameImage := reported.Image == image || !distributions.Of(payload.Distribution()).ReleaseByDigest
	if sameImage && reported.Version == payload.Version() {
		return ""
	}
	return fmt.Sprintf("Rolling out %s (%s)", payload.Version(), image)
}

// untaken returns a message if the spec names a release that the control plane does not have, because this reconcile
// stopped before.
func (s *scope) untaken() string {
	for _, wanted := range []string{s.HC.Spec.Release.Image, s.controlPlaneSource()} {
		if _, taken := release.Taken(s.HCP, wanted); wanted != "" && !taken {
			return fmt.Sprintf("Release %s is not rolled out yet; see the conditions %s and %s",
				wanted, hyperv1.ReconciliationActive, hyperv1.ReconciliationSucceeded)
		}
	}
	return ""
}

// controlPlaneSource returns the image of spec.controlPlaneRelease; empty if it is not set.
func (s *scope) controlPlaneSource() string {
	if own := s.HC.Spec.ControlPlaneRelease; own != nil {
		return own.Image
	}
	return ""
}
