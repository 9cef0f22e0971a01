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

// releaseRetry is how soon a payload that could not be read is tried again.
const releaseRetry = 20 * time.Second

// images are the releases that a HostedControlPlane names, and what they were resolved from.
type images struct {
	// release is that of the nodes, and of the control plane where controlPlane is empty.
	release, controlPlane string
	// releaseSource and controlPlaneSource are how the HostedCluster calls them.
	releaseSource, controlPlaneSource string
}

// running is the release of the control plane.
func (i images) running() string { return cmp.Or(i.controlPlane, i.release) }

// imagesOf is what a HostedControlPlane names now; the zero value when there is none.
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

// reconcileRelease decides which releases the HostedControlPlane names: those of the spec, or, while they cannot be read or
// must not be taken, those that it has. Only a new control plane waits for a release; the others go on being reconciled.
func (r *Reconciler) reconcileRelease(ctx context.Context, s *scope) (ctrl.Result, error) {
	wanted, result, err := r.validateRelease(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.images = wanted; wanted.release == "" {
		s.images = imagesOf(s.hcp)
	}
	if s.images.release == "" {
		return result, phase.ErrStop
	}
	return result, nil
}

// readPayload reads what the control plane runs, which the managers come from.
func (r *Reconciler) readPayload(ctx context.Context, s *scope) (ctrl.Result, error) {
	payload, err := r.lookup(ctx, s, s.images.running())
	if err != nil {
		s.reject(hyperv1.ValidReleaseImage, hyperv1.InvalidImageReason, err.Error())
		return ctrl.Result{RequeueAfter: releaseRetry}, phase.ErrStop
	}
	s.release = payload
	return ctrl.Result{}, r.reportUpgradeable(ctx, s)
}

// validateRelease reads what the spec names. It returns no images when they are refused, which a condition tells.
func (r *Reconciler) validateRelease(ctx context.Context, s *scope) (images, ctrl.Result, error) {
	wanted, err := r.resolve(ctx, s)
	if err != nil {
		s.reject(hyperv1.ValidReleaseImage, hyperv1.InvalidImageReason, err.Error())
		return images{}, ctrl.Result{RequeueAfter: releaseRetry}, nil
	}
	if err := s.versionFault(wanted); err != nil {
		s.reject(hyperv1.ValidReleaseImage, hyperv1.InvalidImageReason, err.Error())
		return images{}, ctrl.Result{}, nil
	}
	s.accept(hyperv1.ValidReleaseImage)
	if s.upgradeBlocked, err = r.upgradeBlocked(ctx, s, wanted); err != nil || s.upgradeBlocked != "" {
		return images{}, ctrl.Result{}, err
	}
	return wanted, ctrl.Result{}, nil
}

// resolve reads the payloads that the spec names.
func (r *Reconciler) resolve(ctx context.Context, s *scope) (images, error) {
	wanted := images{releaseSource: s.hc.Spec.Release.Image}
	var err error
	if s.wanted, wanted.release, err = r.take(ctx, s, wanted.releaseSource); err != nil {
		return images{}, err
	}
	s.wantedControlPlane = s.wanted
	if own := s.hc.Spec.ControlPlaneRelease; own != nil && own.Image != "" {
		wanted.controlPlaneSource = own.Image
		s.wantedControlPlane, wanted.controlPlane, err = r.take(ctx, s, own.Image)
	}
	return wanted, err
}

// take reads a payload and returns it with the pull spec that names it from now on. A release of Kubernetes is named by its
// digest from the moment when it is taken: the tag may point to another one when the next machine is installed. The operators
// of an OpenShift payload get the pull spec as the user wrote it, which they compare with what they report.
func (r *Reconciler) take(ctx context.Context, s *scope, image string) (*releaseinfo.ReleaseImage, string, error) {
	if taken, ok := release.Taken(s.hcp, image); ok {
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
	return release.Access{PullSecret: s.pullSecret, TrustBundle: s.trustBundle, Mirrors: s.hc.Spec.ImageContentSources}
}
