// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"cmp"
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// releaseRetry is the delay before an unreadable payload is read again.
const releaseRetry = 20 * time.Second

// images are the releases that a HostedControlPlane names, and the references from which they were resolved.
type images struct {
	// release is the release of the nodes, and also of the control plane if controlPlane is empty.
	release, controlPlane string
	// releaseSource and controlPlaneSource are the references in the HostedCluster.
	releaseSource, controlPlaneSource string
}

// running returns the release of the control plane.
func (i images) running() string { return cmp.Or(i.controlPlane, i.release) }

// imagesOf returns the releases that a HostedControlPlane names now; the zero value if there is none.
func imagesOf(hcp *hyperv1.HostedControlPlane) images {
	if hcp == nil {
		return images{}
	}
	i := images{
		release:            hcp.Spec.ReleaseImage,
		releaseSource:      cmp.Or(hcp.Annotations[hyperv1.ReleaseImageSourceAnnotation], hcp.Spec.ReleaseImage),
		controlPlaneSource: hcp.Annotations[hyperv1.ControlPlaneReleaseImageSourceAnnotation],
	}
	if own := hcp.Spec.ControlPlaneReleaseImage; own != nil {
		i.controlPlane = *own
		i.controlPlaneSource = cmp.Or(i.controlPlaneSource, *own)
	}
	return i
}

// reconcileRelease decides which releases the HostedControlPlane names. It uses the releases in the spec. While one of
// these cannot be read or is blocked, it keeps the current releases. Only a new control plane waits for a release;
// existing ones are still reconciled.
func (r *Reconciler) reconcileRelease(ctx context.Context, s *scope) (ctrl.Result, error) {
	wanted, result, err := r.validateRelease(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.images = wanted; wanted.release == "" {
		s.images = imagesOf(s.HCP)
	}
	if s.images.release == "" {
		return result, phase.ErrStop
	}
	return result, nil
}

// readPayload reads the payload that the control plane runs. It contains the managers.
func (r *Reconciler) readPayload(ctx context.Context, s *scope) (ctrl.Result, error) {
	payload, err := r.lookup(ctx, s, s.images.running())
	if err != nil {
		s.Reject(hyperv1.ValidReleaseImage, hyperv1.InvalidImageReason, err.Error())
		return ctrl.Result{RequeueAfter: releaseRetry}, phase.ErrStop
	}
	s.Release = payload
	return ctrl.Result{}, r.reportUpgradeable(ctx, s)
}

// validateRelease reads the payloads in the spec. If it rejects them, it sets a condition and returns no images.
func (r *Reconciler) validateRelease(ctx context.Context, s *scope) (images, ctrl.Result, error) {
	wanted, err := r.resolve(ctx, s)
	if err != nil {
		s.Reject(hyperv1.ValidReleaseImage, hyperv1.InvalidImageReason, err.Error())
		return images{}, ctrl.Result{RequeueAfter: releaseRetry}, nil
	}
	if err := s.versionFault(wanted); err != nil {
		s.Reject(hyperv1.ValidReleaseImage, hyperv1.InvalidImageReason, err.Error())
		return images{}, ctrl.Result{}, nil
	}
	s.Accept(hyperv1.ValidReleaseImage)
	if s.upgradeBlocked, err = r.upgradeBlocked(ctx, s, wanted); err != nil || s.upgradeBlocked != "" {
		return images{}, ctrl.Result{}, err
	}
	return wanted, ctrl.Result{}, nil
}

// resolve reads the payloads in the spec.
func (r *Reconciler) resolve(ctx context.Context, s *scope) (images, error) {
	wanted := images{releaseSource: s.HC.Spec.Release.Image}
	var err error
	if s.wanted, wanted.release, err = r.take(ctx, s, wanted.releaseSource); err != nil {
		return images{}, err
	}
	s.wantedControlPlane = s.wanted
	if own := s.HC.Spec.ControlPlaneRelease; own != nil && own.Image != "" {
		wanted.controlPlaneSource = own.Image
		s.wantedControlPlane, wanted.controlPlane, err = r.take(ctx, s, own.Image)
	}
	return wanted, err
}

// take reads a payload and returns it with the pull spec that names it from now on. A Kubernetes release is pinned to
// its digest on first use, because the tag may point to another image later, when a machine is installed. The operators
// of an OpenShift payload get the user's original pull spec, because they compare it with what they report.
func (r *Reconciler) take(ctx context.Context, s *scope, image string) (*releaseinfo.ReleaseImage, string, error) {
	if taken, ok := release.Taken(s.HCP, image); ok {
		payload, err := r.lookup(ctx, s, taken)
		return payload, taken, err
	}
	payload, err := r.lookup(ctx, s, image)
	if err != nil {
		return nil, "", err
	}
	if distributions.Of(payload.Distribution()).ReleaseByDigest {
		return payload, payload.Pinned(), nil
	}
	return payload, image, nil
}

func (r *Reconciler) lookup(ctx context.Context, s *scope, image string) (*releaseinfo.ReleaseImage, error) {
	return r.Releases.Lookup(ctx, image, s.registryAccess())
}

func (s *scope) registryAccess() release.Access {
	return release.Access{PullSecret: s.inputs.PullSecret, TrustBundle: s.inputs.TrustBundle, Mirrors: s.HC.Spec.ImageContentSources}
}
