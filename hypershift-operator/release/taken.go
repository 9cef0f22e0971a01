// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/imageregistry"
)

// Taken returns the pull spec that a control plane uses for image, the name in its HostedCluster, and whether it uses
// image at all. For a Kubernetes payload the pull spec contains the digest, so that all readers get the same release
// even if the tag moves.
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

// OfPool returns the pull spec of a pool's release. It is the image of the spec, pinned to the digest that the pool or
// the control plane first read. So all machines and the control plane keep the same release if the tag moves. hcp is
// nil if there is no control plane.
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

// annotated returns the release in the annotation of version 0.1.0 and of backups. Tenants can write annotations, so it
// is only accepted if the spec could name the same release: a digest in the same repository.
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
