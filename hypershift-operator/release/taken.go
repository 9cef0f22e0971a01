package release

import (
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
