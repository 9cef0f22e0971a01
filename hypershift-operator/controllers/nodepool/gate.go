// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseversion"
)

// gate refuses a release that would make nodes newer than their control plane. It refuses a newer version than the
// control plane has completed. It also refuses other images of that version while the control plane is being updated to
// them.
func (r *Reconciler) gate(ctx context.Context, s *reconciliation) error {
	if s.HC.Annotations[hyperv1.SkipReleaseImageValidation] != "" {
		s.controlPlaneVersion = completedVersion(s.HC)
		return nil
	}
	var err error
	if s.controlPlaneVersion, err = r.versionOfControlPlane(ctx, s); err != nil {
		return err
	}
	return errors.Join(releaseversion.Supported(s.Release, s.Pool.Status.Version), releaseversion.Newer(s.Release.Version(), s.controlPlaneVersion), r.inOrder(ctx, s))
}

// versionOfControlPlane returns the newest version that the control plane has completed, because until then its API
// server may still be the old one. During the first installation it returns the version that the spec names.
func (r *Reconciler) versionOfControlPlane(ctx context.Context, s *reconciliation) (string, error) {
	if version := completedVersion(s.HC); version != "" {
		return version, nil
	}
	wanted, err := r.clusterRelease(ctx, s)
	if err != nil {
		return "", err
	}
	return wanted.Version(), nil
}

// clusterRelease returns the payload of the control plane according to the cluster's spec.
func (r *Reconciler) clusterRelease(ctx context.Context, s *reconciliation) (*releaseinfo.ReleaseImage, error) {
	image := s.HC.Spec.Release.Image
	if own := s.HC.Spec.ControlPlaneRelease; own != nil && own.Image != "" {
		image = own.Image
	}
	taken, ok := release.Taken(s.hcp, image)
	if !ok && image == s.Pool.Spec.Release.Image {
		return s.Release, nil
	}
	wanted, err := r.Releases.Lookup(ctx, cmp.Or(taken, image), s.access)
	if err != nil {
		return nil, fmt.Errorf("reading the release of HostedCluster %s to compare it with the pool's: %w", s.HC.Name, err)
	}
	return wanted, nil
}

// inOrder refuses a release of the control plane's version while the control plane is being updated to that release.
func (r *Reconciler) inOrder(ctx context.Context, s *reconciliation) error {
	if s.Release.Version() != s.controlPlaneVersion {
		return nil
	}
	coming, err := r.comingRelease(ctx, s)
	if err != nil || !coming {
		return err
	}
	return fmt.Errorf("the control plane has not completed release %s; nodes are updated afterwards", s.Release.Pinned())
}

// comingRelease reports whether the control plane is being updated to the pool's release, or is about to be. The
// history does not contain a release before the control plane's own operator has observed it.
func (r *Reconciler) comingRelease(ctx context.Context, s *reconciliation) (bool, error) {
	last := lastCompleted(s.HC)
	if last == nil || s.isRelease(last.Image) {
		return false, nil
	}
	if newest := s.HC.Status.Version.History[0]; newest.State != configv1.CompletedUpdate && s.isRelease(newest.Image) {
		return true, nil
	}
	if !changes(s.HC) {
		return false, nil
	}
	wanted, err := r.clusterRelease(ctx, s)
	return err == nil && s.isRelease(wanted.Pinned()), err
}

// changes reports whether the control plane is being updated. It also returns true if a change of the spec has not been
// observed yet, because that change may start an update.
func changes(hc *hyperv1.HostedCluster) bool {
	c := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.HostedClusterProgressing))
	return c != nil && (c.Status == metav1.ConditionTrue || c.ObservedGeneration != hc.Generation)
}

// isRelease reports whether a pull spec names the pool's release, by its digest or by the same text as in the pool's
// spec.
func (s *reconciliation) isRelease(image string) bool {
	if _, digest, ok := strings.Cut(image, "@"); ok && s.Release.Digest() != "" {
		return digest == s.Release.Digest()
	}
	return image == s.Pool.Spec.Release.Image
}

// lastCompleted returns the newest history entry that the control plane has completed; nil during the first
// installation.
func lastCompleted(hc *hyperv1.HostedCluster) *configv1.UpdateHistory {
	if hc.Status.Version == nil {
		return nil
	}
	for i := range hc.Status.Version.History {
		if entry := &hc.Status.Version.History[i]; entry.State == configv1.CompletedUpdate && entry.Version != "" {
			return entry
		}
	}
	return nil
}

func completedVersion(hc *hyperv1.HostedCluster) string {
	if entry := lastCompleted(hc); entry != nil {
		return entry.Version
	}
	return ""
}

// reportSkew reports whether nodes of the pool's release would be too far behind the control plane.
func (s *reconciliation) reportSkew() {
	conditionType := hyperv1.NodePoolSupportedVersionSkewConditionType
	if err := releaseversion.Skew(s.Release.Version(), s.controlPlaneVersion); err != nil {
		s.SetFalse(conditionType, hyperv1.NodePoolUnsupportedSkewReason, err.Error())
		return
	}
	s.SetTrue(conditionType, hyperv1.AllIsWellMessage)
}
