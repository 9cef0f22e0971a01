// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Taken is the pull spec under which a control plane took what its HostedCluster calls image, and whether it did: with a
// Kubernetes payload that names the digest, so that whoever asks gets the same release, wherever a tag points to by now.
func Taken(hcp *hyperv1.HostedControlPlane, image string) (string, bool) {
	if hcp == nil || image == "" {
		return "", false
	}
	controlPlane := hcp.Spec.ControlPlaneReleaseImage
	switch {
	case hcp.Annotations[hyperv1.ReleaseImageSourceAnnotation] == image, hcp.Spec.ReleaseImage == image:
		return hcp.Spec.ReleaseImage, true
	case controlPlane == nil:
		return "", false
	case hcp.Annotations[hyperv1.ControlPlaneReleaseImageSourceAnnotation] == image, *controlPlane == image:
		return *controlPlane, true
	}
	return "", false
}

// OfPool is the pull spec that a pool's release is read by: what spec names, by the digest that it had when it was first
// read, be it by the control plane (nil for none). So machines differ neither among each other nor from it because somebody
// moved a tag.
func OfPool(pool *hyperv1.NodePool, hcp *hyperv1.HostedControlPlane) string {
	image := pool.Spec.Release.Image
	if named, pinned, ok := strings.Cut(pool.Annotations[hyperv1.NodePoolResolvedReleaseAnnotation], " "); ok && named == image {
		return pinned
	}
	if taken, ok := Taken(hcp, image); ok {
		return taken
	}
	return image
}
