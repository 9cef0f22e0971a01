package hostedcluster

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// releaseRetry is how soon a payload that could not be read is tried again.
const releaseRetry = 20 * time.Second

// reconcileRelease reads the wanted payload and decides which one the control plane runs.
func (r *Reconciler) reconcileRelease(ctx context.Context, s *scope) (ctrl.Result, error) {
	wanted, err := r.lookup(ctx, s, s.hc.Spec.Release.Image)
	if err != nil {
		s.reject(hyperv1.ValidReleaseImage, hyperv1.InvalidImageReason, err.Error())
		return ctrl.Result{RequeueAfter: releaseRetry}, phase.ErrStop
	}
	s.wanted = wanted
	if err := r.checkVersion(s); err != nil {
		s.reject(hyperv1.ValidReleaseImage, hyperv1.InvalidImageReason, err.Error())
		return ctrl.Result{}, phase.ErrStop
	}
	s.accept(hyperv1.ValidReleaseImage)
	s.releaseImage = s.hc.Spec.Release.Image
	if s.upgradeBlocked = upgradeBlocked(s); s.upgradeBlocked != "" {
		s.releaseImage = s.hcp.Spec.ReleaseImage
	}
	if s.release, err = r.lookup(ctx, s, s.controlPlaneImage()); err != nil {
		s.reject(hyperv1.ValidReleaseImage, hyperv1.InvalidImageReason, err.Error())
		return ctrl.Result{RequeueAfter: releaseRetry}, phase.ErrStop
	}
	return ctrl.Result{}, nil
}

func (r *Reconciler) lookup(ctx context.Context, s *scope, image string) (*releaseinfo.ReleaseImage, error) {
	return r.Releases.Lookup(ctx, image, release.Access{
		PullSecret: s.pullSecret, TrustBundle: s.trustBundle, Mirrors: s.hc.Spec.ImageContentSources,
	})
}

func (r *Reconciler) checkVersion(s *scope) error {
	if s.hc.Annotations[hyperv1.SkipReleaseImageValidation] != "" {
		return nil
	}
	return release.Supported(s.wanted, completedVersion(s.hc.Status.Version))
}

// controlPlaneImage is the payload that the control plane runs, which may be ahead of the one that nodes run.
func (s *scope) controlPlaneImage() string {
	if cp := s.hc.Spec.ControlPlaneRelease; cp != nil && cp.Image != "" {
		return cp.Image
	}
	return s.releaseImage
}

// upgradeBlocked says why a changed spec.release must not be rolled out now; empty when it may be.
func upgradeBlocked(s *scope) string {
	image := s.hc.Spec.Release.Image
	running := completedVersion(s.hc.Status.Version)
	switch {
	case s.hcp == nil, s.hcp.Spec.ReleaseImage == image, running == "":
		return ""
	case s.hc.Annotations[hyperv1.ForceUpgradeToAnnotation] == image, s.hc.Spec.ControlPlaneRelease != nil:
		return ""
	case release.SameMinor(running, s.wanted.Version()):
		return ""
	}
	upgradeable := condition.Copy(s.hcp.Status.Conditions, string(hyperv1.ClusterVersionUpgradeable), hyperv1.StatusUnknownReason)
	if upgradeable.Status != "False" {
		return ""
	}
	return fmt.Sprintf("The cluster cannot go from %s to %s now: %s. Mend that, or set the annotation %s to %s to go there all the same",
		running, s.wanted.Version(), upgradeable.Message, hyperv1.ForceUpgradeToAnnotation, image)
}

// completedVersion is the version that the control plane last reached, empty for none.
func completedVersion(version *hyperv1.ClusterVersionStatus) string {
	if version == nil {
		return ""
	}
	for _, entry := range version.History {
		if entry.State == "Completed" {
			return entry.Version
		}
	}
	return ""
}
