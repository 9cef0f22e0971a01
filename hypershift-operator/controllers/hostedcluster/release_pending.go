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

// pending says what is on its way although the control plane does not report it yet, so that the change of a release shows in
// the pass that sees it; empty when the control plane reports all of it.
func (s *scope) pending() string {
	switch {
	case s.hcp == nil, !s.hc.DeletionTimestamp.IsZero():
		return ""
	case s.release == nil:
		return s.untaken()
	}
	status := s.hcp.Status
	if why := s.unreported(status.ControlPlaneVersion.Desired, s.images.running(), s.release); why != "" || status.VersionStatus == nil {
		return why
	}
	return s.unreported(status.VersionStatus.Desired, s.images.release, s.wanted)
}

// unreported compares what is reported with what was asked for. How the operators of an OpenShift payload spell its image is
// theirs, so there only the version counts.
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

// untaken says that there is a new release in the spec when the pass did not come as far as that.
func (s *scope) untaken() string {
	for _, wanted := range []string{s.hc.Spec.Release.Image, s.controlPlaneSource()} {
		if _, taken := release.Taken(s.hcp, wanted); wanted != "" && !taken {
			return fmt.Sprintf("Release %s is not taken up yet: the conditions %s and %s tell what it waits for",
				wanted, hyperv1.ReconciliationActive, hyperv1.ReconciliationSucceeded)
		}
	}
	return ""
}

// controlPlaneSource is what the spec calls the control plane's own release; empty when it has none.
func (s *scope) controlPlaneSource() string {
	if own := s.hc.Spec.ControlPlaneRelease; own != nil {
		return own.Image
	}
	return ""
}
