// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/imageregistry"
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

// OfPool is the pull spec that a pool's release is read by: what spec names, by the digest that it had when it was
// first read, be it by the control plane (nil for none). So machines differ neither among each other nor from it
// because a tag was moved.
func OfPool(pool *hyperv1.NodePool, hcp *hyperv1.HostedControlPlane) string {
	image := pool.Spec.Release.Image
	if resolved := pool.Status.ResolvedRelease; resolved != nil {
		if resolved.Image == image {
			return resolved.PinnedImage
		}
	} else if pinned, ok := annotated(pool); ok {
		return pinned
	}
	if taken, ok := Taken(hcp, image); ok {
		return taken
	}
	return image
}

// annotated is the release that the annotation of 0.1.0 and of backups names. Tenants write annotations: it counts only
// as far as spec could say the same, with a digest of the very repository.
func annotated(pool *hyperv1.NodePool) (string, bool) {
	image := pool.Spec.Release.Image
	named, pinned, ok := strings.Cut(pool.Annotations[hyperv1.NodePoolResolvedReleaseAnnotation], " ")
	if !ok || named != image {
		return "", false
	}
	reference, err := imageregistry.Parse(pinned)
	if _, digest := reference.(name.Digest); err != nil || !digest {
		return "", false
	}
	spec, err := imageregistry.Parse(image)
	if err != nil || spec.Context().Name() != reference.Context().Name() {
		return "", false
	}
	return pinned, true
}
